"""Takes pictures of the status page in every scene of the browser tests: ``python -m tools.gallery FOLDER [SCENE ...]``

For looking at: what does somebody with a wallet understand of it after five seconds?
"""

import sys
import tempfile
from itertools import groupby
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.pages import BERLIN, a_browser
from tests.browser.scenes import SCENES, Scene, a_site, open_scene


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    named = {name: scene for name, scene in SCENES.items() if name in sys.argv[2:] or len(sys.argv) == 2}
    by_deployment = sorted(named.items(), key=lambda item: item[1].deployment)
    with a_browser() as browser:
        for deployment, scenes in groupby(by_deployment, key=lambda item: item[1].deployment):
            with tempfile.TemporaryDirectory() as name, a_site(Path(name), deployment) as site:
                for scene_name, scene in scenes:
                    take(browser, site.server.base, scene, folder / f"{scene_name}.png")
    return 0


def take(browser: Browser, base: str, scene: Scene, path: Path) -> None:
    context = browser.new_context(timezone_id=BERLIN, reduced_motion="reduce", **scene.options)
    page = context.new_page()
    open_scene(page, base, scene)
    page.screenshot(path=path)
    page.screenshot(path=path.with_stem(f"{path.stem}-whole"), full_page=True)
    print(path)
    context.close()


if __name__ == "__main__":
    sys.exit(main())
