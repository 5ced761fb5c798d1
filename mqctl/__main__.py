"""The command `mqctl`, also as python -m mqctl."""

import os
import signal


def main() -> None:
    """Run it. An interrupt while modules are loaded ends the process silently."""
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        from mqctl.cli.main import main as run

        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.kill(os.getpid(), signal.SIGINT)
        raise
    run()


if __name__ == "__main__":
    main()
