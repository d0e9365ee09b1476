"""What describes a folder of shards: prepared.json for a run, pieces.json for people. They are written last."""
import json
import os

from .pieces import as_json


def description(tokenizer, template, ids, vocabulary, counts, shards):
    return {
        "format": "planwright_prepared", "version": 1,
        "tokenizer": {"name": os.path.basename(tokenizer.path), "sha256": tokenizer.sha256},
        "template": {"sha256": template.sha256} if template else None,
        "ids": {role: ids[role].id for role in ("image", "pad", "end")}, "vocabulary": vocabulary,
        "documents": counts.documents, "tokens": counts.tokens, "learnt": counts.learnt, "images": counts.images,
        "shards": shards}


def write(folder, value, found_pieces):
    with open(os.path.join(folder, "pieces.json"), "w", encoding="utf-8") as file:
        file.write(as_json(found_pieces))
    with open(os.path.join(folder, "prepared.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
