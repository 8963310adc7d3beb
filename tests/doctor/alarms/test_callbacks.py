"""The doctor in the real trainers of other people."""

import json
import warnings

import pytest
import torch

from depthpde.doctor.alarms.callbacks import DoctorCallback, lightning_doctor
from doctor.patients import bert
from doctor.zoo import VALIDATION

CASE = VALIDATION[1]


class Examples(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        ids = torch.randint(1, CASE.words, (CASE.length,), generator=draw)
        return {"input_ids": ids, "labels": torch.tensor(index % 5)}


def test_hugging_face_trainer_is_watched(tmp_path, capsys):
    pytest.importorskip("accelerate", reason="transformers.Trainer needs accelerate")
    from transformers import Trainer, TrainingArguments

    model = bert(CASE).model
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=6, per_device_train_batch_size=4, report_to=[],
        save_strategy="no", disable_tqdm=True, use_cpu=True, max_grad_norm=1e-6,
        dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(model=model, args=arguments, train_dataset=Examples())
    sent = []
    callback = DoctorCallback(every=3, budget=None, sink=lambda *line: sent.append(line))
    trainer.add_callback(callback)
    trainer.train()
    assert [update for update, _ in sent] == [1, 3, 6]
    assert all(name.startswith("doctor/") for _, numbers in sent for name in numbers)
    lines = [json.loads(line) for line in (tmp_path / "doctor.jsonl").read_text().splitlines()]
    assert [each["update"] for each in lines] == [1, 3, 6]
    assert lines[-1]["verdicts"]["exploding gradients"] == "healthy"
    assert max(lines[-1]["series"]["gradient.weights"]) > 1e-3, "before clipping"
    assert "doctor: 3 looks, every 3 updates, took" in capsys.readouterr().err


def test_an_event_that_says_nothing_is_answered_with_nothing():
    callback = DoctorCallback()
    assert callback.on_evaluate(None, None, None) is None
    assert callback.on_step_end(None, None, None) is None
    with pytest.raises(AttributeError, match="has no attribute 'name'"):
        callback.name  # noqa: B018


def test_lightning_trainer_is_watched(tmp_path, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own imports
        lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = bert(CASE).model

        def training_step(self, batch, index):
            return self.inner(**batch).loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    sent = []
    watch = lightning_doctor(every=3, budget=None, sink=lambda *line: sent.append(line))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of workers and log folders
        trainer = lightning.Trainer(
            max_steps=6, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
            callbacks=[watch],
        )  # fmt: skip
        trainer.fit(Module(), torch.utils.data.DataLoader(Examples(), batch_size=4))
    lines = [json.loads(line) for line in (tmp_path / "doctor.jsonl").read_text().splitlines()]
    assert [each["update"] for each in lines] == [1, 3, 6]
    assert "gradient.amplification" in lines[-1]["series"]
    assert [update for update, _ in sent] == [1, 3, 6]
    assert "doctor: 3 looks" in capsys.readouterr().err


def test_refuses_without_lightning(monkeypatch):
    monkeypatch.setattr("depthpde.doctor.alarms.callbacks.import_module", _absent)
    with pytest.raises(ImportError, match=r"needs Lightning; use pip install 'lightning>=2.6.4'"):
        lightning_doctor()


def _absent(name):
    raise ImportError(name)
