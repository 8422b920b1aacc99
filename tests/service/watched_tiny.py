"""A server over the tiny encoder that tells for how long its event loop was held, in a process of its own."""

from tercet.service.app import create_app
from tercet.service.serving import run_server
from tercet.service.settings.reading import load_settings
from tests.conftest import TinyEncoder
from tests.endurance.serving.watched import watch


def main() -> None:
    settings = load_settings()
    app = create_app(settings, TinyEncoder())
    watch(app)
    run_server(app, settings)


if __name__ == "__main__":
    main()
