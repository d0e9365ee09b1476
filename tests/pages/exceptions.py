"""What page_commands.py does not do as a page says, each with its reason. An entry that fits no command is an error."""

ALWAYS = 'always'  # what stands in no entry
LONG = 'long'      # `./dev soak` runs it
NEVER = 'never'    # nothing here can

KILLED = ('plan launch recipes/icons_held_out_8r_toy.yaml checkpoint.every_steps=10 --local --yes '
          '--run-dir build/demo/killed')

# Page, how the command (and its output) begins, when it runs, why. The first entry that fits counts.
NOT_RUN = (
    ('docs/tour.md', './dev prepare icons', LONG, 'fetches packages'),
    ('docs/tour.md', 'plan data', LONG, 'needs what `./dev prepare icons` makes'),
    ('docs/tour.md', f'{KILLED}\n...\ncheckpoint', NEVER, 'where a rank is when it is killed; the demo kills it'),
    ('docs/tour.md', 'plan launch recipes/nemotron_moe_vlm_20l', LONG, 'eight ranks; the demo runs it'),
    ('docs/tour.md', 'plan launch recipes/icons', LONG, 'eight ranks for a minute; the demo runs it'),
    ('docs/tour.md', 'plan report', LONG, 'of a run of the demo'),
    ('docs/tour.md', 'plan evaluate', LONG, 'of a run of the demo'),
    ('docs/agents.md', 'plan launch', NEVER, 'needs Slurm, or agents on two nodes'),
    ('docs/agents.md', 'plan agent', NEVER, 'waits for a head on another node'),
    ('docs/diagnostics.md', 'plan validate', NEVER, 'explanations_test runs each example of this generated page'),
    ('docs/from_photos.md', '', NEVER, 'from_photos_test runs the page, with the folders that it begins with'),
    ('docs/gpu.md', 'export', NEVER, 'needs GPUs'),
    ('docs/gpu.md', 'tests/gpu/', NEVER, 'needs GPUs'),
    ('docs/gpu.md', 'python', NEVER, 'needs GPUs and torch'),
    ('docs/gpu.md', 'MAMBA_SKIP_CUDA_BUILD', NEVER, 'fetches packages'),
    ('docs/gpu.md', 'mkdir', NEVER, 'needs what was fetched'),
    ('docs/gpu.md', 'pip', NEVER, 'fetches packages'),
    ('docs/gpu.md', 'build-gpu/bin/', NEVER, 'needs GPUs'),
    ('docs/measure.md', 'plan measure recipes/qwen3_1_7b_1g.yaml --probe', NEVER, 'needs the GPU of its profile'),
    ('docs/help.md', 'plan help --man ~', NEVER, 'writes to the home folder of the reader'),
    ('docs/help.md', 'man', NEVER, 'reads pages of the home folder of the reader'),
    ('docs/hugging_face.md', 'plan', NEVER, 'needs a published model of 63 GB'),
    ('docs/measure.md', 'plan measure recipes/', LONG, 'measures for ten seconds'),
    ('docs/measure.md', 'plan measure a.yaml', NEVER, 'of recipes of the reader'),
    ('docs/run_reports.md', 'plan status', NEVER, 'looks at a run between two of its steps'),
    ('docs/run_reports.md', 'plan report', LONG, 'of runs of the demo'),
    ('docs/training/prepare_data.md', 'cat', NEVER, 'files of the reader'),
    ('docs/training/prepare_data.md', 'plan', LONG, 'needs what `./dev prepare icons` makes'),
    ('docs/training/stages.md', 'plan launch', LONG, 'eight ranks for a minute'),
    ('docs/trials.md', 'plan launch RECIPE', NEVER, 'a recipe of the reader, where it would run'),
    ('docs/tune.md', 'plan tune recipes/nemotron_moe_vlm_54l', NEVER, 'KEYS stands for the keys named above it'),
    ('docs/tune.md', 'plan tune recipes/nemotron_moe_vlm_20l_2g_frozen', NEVER, 'takes minutes'),
    ('docs/tune.md', 'plan', LONG, 'searches for ten seconds'),
    ('docs/weights.md', 'plan weights', NEVER, 'needs a published model of 63 GB'),
    ('*', './dev', NEVER, 'builds or fetches; who builds and tests runs it, and `./dev soak` runs the demo'),
)

TINY = 'plan launch recipes/nemotron_moe_vlm_tiny.yaml checkpoint.every_steps=2 --local --yes --run-dir run'
FIVE_RANKS = 'modules.language.placement.first_rank=1 modules.language.placement.ranks=4 modules.language.parallel.tp=2'

# A recipe of the reader: the tiny one, with sources of its own. DATA has documents of waves, as webdataset writes them.
SOURCES = '''ln -sfn "$DATA" waves
cat >recipe.yaml <<END
extends: [recipes/nemotron_moe_vlm_tiny.yaml]
models: {{hybrid_moe_tiny: {{vocabulary: 260}}, radio_vit_tiny: {{max_image: 128}}}}
batch: {{sequence_length: 128}}
checkpoint: {{every_steps: 3}}
data: {{kind: sources, tokenizer: bytes, max_patches: 100, sources: [{}]}}
END
'''

# The recipe of docs/jobs.md.
JOB = '''extends: recipes/qwen3_30b_a3b_16g.yaml
launch:
  interface: ib0
  env: [NCCL_IB_HCA=mlx5, TZ]
  setup: module load cuda/13.0
  slurm:
    partition: batch
    time: "1-00:00:00"
    gres: gpu:h200:8
    container: nvcr.io#nvidia/pytorch:25.01-py3
'''

# Page, how the command begins, what runs before it: what the page says in words, or what the demo did.
BEFORE = (
    ('docs/jobs.md', 'cat job.yaml', f"cat >job.yaml <<'END'\n{JOB}END"),
    ('docs/tour.md', 'plan validate build/demo/typo.yaml',
     "sed -e 's/global_samples/global_sample/' -e 's|models/|../../recipes/models/|' "
     'recipes/nemotron_moe_vlm_20l_mock_8r.yaml >build/demo/typo.yaml'),
    # Life 1 publishes steps 2, 4 and 6; life 2 does not see step 6, goes on from step 4, and ends while it writes 10.
    ('docs/checkpoints.md', 'plan checkpoint ls', f'''
     rm -r run
     {TINY} --steps 6
     mv run/checkpoints/step-00000006.life-1 six
     {TINY} {FIVE_RANKS} modules.language.parallel.ep=2 checkpoint.every_steps=4 --steps 8
     mv six run/checkpoints/step-00000006.life-1
     cp -r run/checkpoints/step-00000008.life-2 run/checkpoints/step-00000010.life-2
     rm run/checkpoints/step-00000010.life-2/manifest.json'''),
    ('docs/checkpoints.md', 'plan diff', f'mv run lives; {TINY} --steps 3'),
    ('docs/checkpoints.md', 'plan checkpoint show', 'rm -r run; mv lives run'),
    ('docs/checkpoints.md', 'plan checkpoint verify run\nstep-00000008.life-2: damaged',
     'printf X | dd of=run/checkpoints/step-00000008.life-2/rank-00002.safetensors bs=1 seek=99999 conv=notrunc'),
    ('docs/tour.md', './dev prepare icons', 'rm -rf build/icon_ids'),
    ('docs/training/prepare_data.md', 'plan data index', 'rm -rf build/icon_ids/index'),
    ('docs/training/prepare_data.md', 'plan launch', 'rm -rf build/demo/icon_ids'),
    ('docs/training/data.md', 'plan launch recipe.yaml',
     SOURCES.format('{name: a, kind: webdataset, shards: waves/shard-000000.tar, weight: 1}, '
                    '{name: b, kind: webdataset, shards: waves/shard-000001.tar, weight: 1}') +
     'plan launch recipe.yaml --local --yes --run-dir run --steps 3\n'
     "sed -i -e 's/000000.tar, weight: 1/&3/' -e 's/000001.tar, weight: 1/&2/' recipe.yaml"),
    ('docs/training/data.md', 'plan data index',
     SOURCES.format('{name: waves, kind: webdataset, shards: waves/*.tar}')),
)
