"""A headless browser, Debian's own, installed if that may be done."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from compat_tests.toolchains import find_program

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)
PATIENCE_S = 60


@contextlib.contextmanager
def browser():
    """A browser with an empty profile, gone afterwards."""
    chromium, driver = find_program("chromium"), find_program("chromedriver")
    options = Options()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    profile = tempfile.mkdtemp(prefix="kafkalite-browser-")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    running = webdriver.Chrome(service=Service(driver), options=options)
    running.set_page_load_timeout(PATIENCE_S)
    try:
        yield running
    finally:
        running.quit()
        shutil.rmtree(profile, ignore_errors=True)


class Console:
    """The pages of one console, as somebody sees them."""

    def __init__(self, driver, url):
        self.driver = driver
        self.url = url

    def open(self, page):
        """Go to a page and wait until it is drawn."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}/console/#/{page}")
        self.wait(lambda: self.script("return document.getElementById('main').dataset.page"))

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def wait(self, condition):
        return WebDriverWait(self.driver, PATIENCE_S, 0.1).until(lambda _: condition())

    @property
    def text(self):
        return self.script("return document.body.innerText")

    def wait_text(self, text):
        self.wait(lambda: text in self.text)

    def click(self, text):
        """Press the button, or follow the link, that says so."""
        found = self.wait(
            lambda: self.script(
                "return [...document.querySelectorAll('button, a')]"
                ".find((each) => each.textContent.trim() === arguments[0])",
                text,
            )
        )
        self.script("arguments[0].click()", found)

    def fill(self, label, value):
        """Write into the field with this label."""
        self.script(
            "const label = [...document.querySelectorAll('label')]"
            ".find((each) => each.textContent.trim().startsWith(arguments[0]));"
            "const input = label.querySelector('input, select, textarea');"
            "input.value = arguments[1];"
            "input.dispatchEvent(new Event('input')); input.dispatchEvent(new Event('change'));",
            label,
            value,
        )

    def errors(self):
        """What the browser complained of, but for answers that are refusals."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] == "SEVERE" and "Failed to load resource" not in entry["message"]
        ]

    def save(self, name):
        """Keep a picture where KAFKALITE_SCREENSHOTS says."""
        folder = os.environ.get("KAFKALITE_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))
