"""Makes shards of token ids from conversations, texts and pictures, before a run (docs/training/prepare_data.md).

A run reads ids; only this package tokenises. Modules, in the order in which data passes through them:
  arguments  the command line          formats/   inputs as people have them -> records
  tokenizer  tokenizer.json, its ids   template   the chat template
  encode     record -> ids and mask    workers    records -> documents, on several processes, in order
  shards     documents -> tar files    prepared   prepared.json and pieces.json
"""
