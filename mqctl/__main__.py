"""The command `mqctl`, also as python -m mqctl."""

import signal


def main() -> None:
    """Run it. An interrupt while modules are loaded ends the process silently."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mqctl.cli.main import main as run

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
