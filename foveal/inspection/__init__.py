"""Pictures of what goes on inside."""
