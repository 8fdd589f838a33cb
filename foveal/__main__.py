"""`python -m foveal` is the `foveal` command."""


def run() -> None:
    """Run the `foveal` command. SIGINT ends it with 130, also while its first modules are imported."""
    try:
        from foveal.cli import main

        main()
    except KeyboardInterrupt:  # before or after the command handles signals itself
        raise SystemExit(130) from None


if __name__ == "__main__":
    run()
