"""What `./dev prepare` writes, `plan data index` reads: the same documents, tokens and images, wherever images are."""
import shutil
import subprocess
import unittest

from cases import Case
from packages import BUILD, FIXTURES, SOURCE

RECIPE = """name: ids
extends: [{recipe}]
models: {{nemotron_hybrid_moe_20l: {{vocabulary: 364}}}}
data:
  kind: sources
  seed: 1234
  sources: [{{name: all, kind: webdataset, shards: ["out_*/*.tar"]}}]
  tokenizer: ids
  index: index
  window: 64
  min_patches: 4
  max_patches: 64
"""
QUESTION = [{"role": "user", "content": "<image> and <image>?"}, {"role": "assistant", "content": "waves"}]


class Index(Case):
    def test_all_ways_to_have_images(self):
        photo = FIXTURES / "prepared/pictures/loose.jpg"
        import pyarrow
        import pyarrow.parquet
        pyarrow.parquet.write_table(pyarrow.table({
            "messages": [QUESTION, QUESTION[1:]], "images": [[{"bytes": photo.read_bytes()}] * 2, []]}),
            self.at / "c.parquet")
        self.tar("set/media/shard_0.tar", [("./a.jpg", photo.read_bytes())])
        self.lines("set/set.jsonl", [{"messages": QUESTION, "images": ["a.jpg", "a.jpg"]}])
        shutil.copy(photo, self.at / "b.jpg")
        self.lines("files.jsonl", [{"messages": QUESTION, "images": ["b.jpg", str(photo)]}, {"text": "a wave"}])
        total = {"documents": 0, "tokens": 0, "images": 0}
        for name, *words in (("parquet", "c.parquet"), ("media", "set"), ("files", "files.jsonl", "--learn", "last"),
                             ("energon", FIXTURES / "energon/questions"), ("captions", FIXTURES / "energon/captions")):
            _, about = self.prepared(*words, out=f"out_{name}")
            total = {key: count + about[key] for key, count in total.items()}
        self.assertEqual((total["documents"], total["images"]), (2 + 1 + 2 + 3 + 5, 2 + 2 + 2 + 3 + 5))
        recipe = self.write("ids.yaml", RECIPE.format(recipe=SOURCE / "recipes/icons_8r_toy.yaml"))
        said = subprocess.run([BUILD / "bin/plan", "data", "index", recipe], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        row = said.stdout.splitlines()[1].replace(",", "").split()
        self.assertEqual(row[:8], ["all", "webdataset", "5", "5", *map(str, total.values()), "0"], said.stdout)


if __name__ == "__main__":
    unittest.main()
