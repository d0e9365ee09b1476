"""Reads what earlier versions wrote (README.md beside this file) with the present one: corpus_test.py BIN

And what is refused: a file of each kind with the number of another format, and the text that tells it.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = os.path.abspath(sys.argv[1])
HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name != '__pycache__')
DATA_CHANGED = 1795824000  # 2026-11-28T00:00:00Z: when the files of data were changed, as an index has it
CHECKPOINT = 'run/checkpoints/step-00000004.life-2'
RECIPE = 'recipe.yaml'


class Corpus(unittest.TestCase):
    """A copy of the files of one version, in a folder of the test."""
    version = VERSIONS[-1]

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name).resolve() / 'corpus'
        shutil.copytree(HERE / self.version, self.folder)
        for file in (self.folder / 'data').iterdir():
            os.utime(file, (DATA_CHANGED, DATA_CHANGED))

    def run_plan(self, *words):
        return subprocess.run([f'{BIN}/plan', *words], cwd=self.folder, capture_output=True, text=True, check=False)

    def plan(self, *words):
        """stdout of a command that must succeed."""
        run = self.run_plan(*words)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def json(self, *words):
        return json.loads(self.plan(*words, '--json'))

    def launch(self, recipe, run, *words):
        return self.run_plan('launch', recipe, '--local', '--yes', '--run-dir', run, *words)

    def refused(self, status, text, *words):
        run = self.run_plan(*words)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn(text, (run.stdout + run.stderr).replace(f'{self.folder}/', ''))

    def read(self, name):
        return (self.folder / name).read_text()

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def steps(self, name):
        """Losses of the records of steps and of evaluations: {(step, set or ''): loss}."""
        losses = {}
        for line in self.read(name).splitlines():
            record = json.loads(line)
            for name, loss in record.get('evaluation', {'': record}).items():
                losses[record['step'], name] = loss['loss']
        return losses

    def write_manifest(self, folder, edit):
        """A manifest that is changed, and whole: its last line is the digest of all before."""
        before = edit(self.read(f'{folder}/manifest.json').rsplit('  "sha256"', 1)[0])
        self.write(f'{folder}/manifest.json',
                   f'{before}  "sha256": "{hashlib.sha256(before.encode()).hexdigest()}"\n}}\n')


class Reads(Corpus):
    def test_recipe(self):
        self.assertIn('corpus is valid', self.plan('validate', RECIPE))

    def test_plan(self):
        self.assertIn('corpus is valid', self.plan('validate', 'plan.json'))
        self.assertIn('mamba', self.plan('show', 'plan.json', 'model'))

    def test_plan_is_that_of_the_recipe(self):
        diff = json.loads(self.run_plan('diff', 'plan.json', RECIPE, '--json').stdout)
        self.assertEqual([change['path'] for change in diff['changes']],
                         ['data.base', 'evaluation.sets[held_out].data.base'])

    def test_run(self):
        self.assertEqual(self.json('status', 'run')['step']['step'], 4)
        self.plan('report', 'run', '--html', 'report.html')
        report = self.json('report', 'run')
        self.assertEqual([life['outcome']['exit_code'] for life in report['lives']], [0, 0])
        self.assertIn('best', self.plan('checkpoint', 'ls', 'run'))

    def test_records_with_fewer_fields_and_others(self):
        records = [json.loads(line) for line in self.read('run/metrics.jsonl').splitlines()]
        fewer = [{key: value for key, value in record.items() if key not in ('pace', 'routing', 'module_grad_norms')}
                 for record in records]
        self.write('run/metrics.jsonl', ''.join(json.dumps({**record, 'of_later': {}}) + '\n' for record in fewer))
        outcome = {**json.loads(self.read('run/outcome.json')), 'of_later': []}
        del outcome['memory']
        self.write('run/outcome.json', json.dumps(outcome))
        report = self.json('report', 'run')
        self.assertEqual((report['step']['step'], report['lives'][1]['outcome']['exit_code']), (4, 0))

    def test_checkpoint(self):
        self.assertIn('whole', self.plan('checkpoint', 'verify', 'run', '--all'))
        self.assertIn('after step 4: 4 applied', self.plan('checkpoint', 'show', 'run'))
        evaluated = self.plan('evaluate', 'run', RECIPE)
        self.assertAlmostEqual(float(re.search(r'held_out +waves +(\S+)', evaluated)[1]),
                               self.steps('run/metrics.jsonl')[4, 'held_out'], places=7)

    def test_run_goes_on(self):
        run = self.launch(RECIPE, 'run', '--accept-changes')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn('resuming after step 4 ', run.stdout)
        # The folder of the data is another one; nothing else is.
        self.assertIn('2 differences', run.stderr)
        losses = self.steps('run/metrics.jsonl')
        self.assertEqual(max(losses), (6, 'held_out'))
        for key, loss in self.steps('goes_on.jsonl').items():
            self.assertAlmostEqual(losses[key], loss, delta=1e-9, msg=str(key))

    def test_weights_of_a_run_and_of_a_folder(self):
        for source in ('run', CHECKPOINT, 'exported'):
            self.assertIn('the weights fit', self.plan('weights', RECIPE, f'initialize.from={source}'))
        self.plan('import', 'exported', '-o', 'models.yaml')
        self.plan('export', 'run', '--dtype', 'fp32', '-o', 'again')
        for file in ('config.json', 'model-00001-of-00001.safetensors'):
            again, exported = self.folder / 'again' / file, self.folder / 'exported' / file
            self.assertEqual(again.read_bytes(), exported.read_bytes())

    def test_index(self):
        [path] = (self.folder / 'data_index').glob('*.index')
        digest = path.read_bytes()[32:64].hex()   # behind magic, version and three numbers
        read = int(self.version == '0.1')   # whose index has no checksums of documents
        source = self.json('data', 'index', RECIPE)['sources'][0]
        self.assertEqual((source['shards_read'], source['digest'], source['file']), (read, digest, str(path)))

    def test_profile(self):
        times = self.plan('show', RECIPE, 'time', 'cluster.profile=profile.json')
        # What begin_step cleared then is more than it does now: so few bytes were not measured.
        self.assertRegex(times, r'How times are known: measured( 99\.\d %, estimated 0\.\d %)?\.')


class RefusesByName(Corpus):
    def setUp(self):
        super().setUp()
        self.itself = self.plan('--version').split()[1].rstrip(',')

    def other_format(self, name, key, number):
        text = self.read(name)
        changed = re.sub(rf'"{key}": \d+', f'"{key}": {number}', text, count=1)
        self.assertNotEqual(changed, text)
        return changed

    def test_plan(self):
        for number in (1, 3):
            self.write('plan.json', self.other_format('plan.json', 'format_version', number))
            text = (f'error: plan.json: the plan has format_version {number}; this version of Planwright '
                    f'({self.itself}) reads 2 [PW0020 PlanUnreadable]\n')
            self.refused(2, text, 'show', 'plan.json', 'model')
            self.refused(2, text, 'launch', 'plan.json', '--local', '--yes', '--run-dir', 'other')

    def test_profile(self):
        self.write('profile.json', self.other_format('profile.json', 'format_version', 2))
        self.refused(1, 'error: the profile profile.json is damaged or of another version: the profile has '
                        f'format_version 2; this version of Planwright ({self.itself}) reads 1 '
                        '[PW0021 ProfileUnusable]\n',
                     'show', RECIPE, 'time', 'cluster.profile=profile.json')

    def test_checkpoint(self):
        self.write_manifest(CHECKPOINT, lambda text: text.replace('"format": 2', '"format": 3', 1))
        text = 'manifest.json: its format is version 3; this version reads 1 and 2\n'
        self.refused(13, f'step-00000004.life-2: damaged\n  {text}', 'checkpoint', 'verify', 'run')
        run = self.launch(RECIPE, 'run', '--accept-changes')
        self.assertEqual(run.returncode, 13, run.stdout + run.stderr)
        self.assertIn(f'checkpoint {CHECKPOINT} is not used: {text}', run.stdout + run.stderr)

    def write_plan_of_run(self, plan):
        self.write('run/plan.json', plan)
        self.write(f'{CHECKPOINT}/plan.json', plan)
        digest = f'"plan_sha256": "{hashlib.sha256(plan.encode()).hexdigest()}"'
        size = f'"plan_bytes": {len(plan.encode())}'
        self.write_manifest(CHECKPOINT, lambda text: re.sub(r'"plan_sha256": "\w+"', digest,
                                                            re.sub(r'"plan_bytes": \d+', size, text)))

    def test_plan_of_a_checkpoint(self):
        self.write_plan_of_run(self.other_format(f'{CHECKPOINT}/plan.json', 'format_version', 3))
        self.runs_with_an_unread_plan(f'the plan has format_version 3; this version of Planwright ({self.itself}) '
                                      'reads 2')

    def runs_with_an_unread_plan(self, why):
        """What is told of it, and that its weights, states and counters are read."""
        self.refused(2, 'error: the plan of the run in run is not read, so this plan cannot be compared with it: '
                        f'{why}; give --accept-changes to go on with this one, or choose another --run-dir\n',
                     'launch', RECIPE, '--local', '--yes', '--run-dir', 'run')
        self.refused(2, f'error: {CHECKPOINT}/plan.json: {why}; only a release that reads the plan can export its '
                        'checkpoint\n', 'export', 'run', '-o', 'again')
        self.assertIn(f'run/plan.json: {why}', self.json('report', 'run')['notes'])
        evaluated = self.run_plan('evaluate', 'run', RECIPE)
        self.assertIn('note: the plan of the checkpoint is not read, so its model is not compared with that of the '
                      f'recipe: {why}\n', evaluated.stderr)
        self.assertRegex(evaluated.stdout, r'held_out +waves +\d')
        diff = self.run_plan('diff', CHECKPOINT, RECIPE)
        self.assertIn(f'{CHECKPOINT}/plan.json: {why} [PW0020 PlanUnreadable]\n', diff.stderr)
        self.assertIn('not compared   layout, samples and rates, ', diff.stdout)
        run = self.launch(RECIPE, 'run', '--accept-changes')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertAlmostEqual(self.steps('run/metrics.jsonl')[6, ''], self.steps('goes_on.jsonl')[6, ''], delta=1e-9)

    def of_gone_kind(self, name):
        """A plan with `data.kind: webdataset`, which 0.1 had."""
        changed = self.read(name).replace('"data": {"kind":"sources"',
                                          '"data": {"kind":"webdataset","shards":["data/waves.tar"]', 1)
        self.assertNotEqual(changed, self.read(name))
        return changed

    def test_kind_of_data_that_is_gone(self):
        why = (f'the plan has data of kind webdataset, which this version of Planwright ({self.itself}) does not have; '
               'with kind sources its samples are others, so compile its recipe again and begin another run')
        self.write('plan.json', self.of_gone_kind('plan.json'))
        for words in (['validate', 'plan.json'], ['show', 'plan.json', 'data'], ['diff', 'plan.json', RECIPE],
                      ['launch', 'plan.json', '--local', '--yes', '--run-dir', 'other']):
            self.refused(2, f'error: plan.json: {why} [PW0020 PlanUnreadable]\n', *words)
        self.write_plan_of_run(self.of_gone_kind(f'{CHECKPOINT}/plan.json'))
        self.runs_with_an_unread_plan(why)
        self.write(RECIPE, re.sub(r'kind: sources\n.*\n.*\n', 'kind: webdataset\n  shards: data/waves.tar\n',
                                  self.read(RECIPE)))
        self.refused(1, f'{RECIPE}:34:9: error: `data.kind` must be one of mock, recorded, sources, found "webdataset" '
                        '[PW0106 UnknownChoice]\n  34 |   kind: webdataset\n     |         ^~~~~~~~~~\n'
                        '  help: write kind: sources, and sources: [{kind: webdataset, shards: FILES}]',
                     'validate', RECIPE)

    def test_prepared(self):
        """Shards that `./dev prepare` made: their summary has a version of its own."""
        shutil.copytree(HERE.parent / 'golden/data_fixtures/prepared', self.folder / 'prepared')
        self.write('prepared/prepared.json', self.other_format('prepared/prepared.json', 'version', 2))
        recipe = self.read(RECIPE).replace('data/waves.tar', 'prepared/*.tar')
        self.write(RECIPE, recipe)
        self.refused(1, 'prepared/prepared.json: version is 2; this program reads 1', 'validate', RECIPE)

    def test_keys_that_are_gone(self):
        gone = {'optimizer.name=adamw': 'delete it: the optimizer is always AdamW\n',
                'gradients.reduce_dtype=fp32': 'delete it: gradients are summed in fp32, ',
                'models.encoder.projector.kind=mlp':
                    'delete it: the kind of an encoder says what its projector is\n'}
        for override, text in gone.items():
            self.refused(1, f'  help: {text}', 'validate', RECIPE, override)


class Version(Corpus):
    def test_is_that_of_the_changelog(self):
        on_top = re.search(r'^## (\S+) \(', (HERE.parent.parent / 'CHANGELOG.md').read_text(), re.M)[1]
        self.assertEqual(self.plan('--version').split()[1].rstrip(','), on_top)


class MakesAnew(Corpus):
    def test_index(self):
        """The index of another version is no error: it is made again from its shards, with the same content."""
        [path] = (self.folder / 'data_index').glob('*.index')
        self.plan('data', 'index', RECIPE)
        index = path.read_bytes()
        before = self.json('data', 'index', RECIPE)['sources'][0]
        for version in index[8] - 1, index[8] + 1:  # the version follows 8 bytes of magic
            path.write_bytes(index[:8] + bytes([version]) + index[9:])
            run = self.run_plan('data', 'index', RECIPE, '--json')
            after = json.loads(run.stdout)['sources'][0]
            self.assertEqual((before['shards_read'], after['shards_read']), (0, 1))
            self.assertEqual((before['digest'], path.read_bytes()), (after['digest'], index))
            self.assertIn(f'{path}: an index of version {version}; this program reads version {index[8]}: all shards '
                          'are read again', run.stderr)


def load_tests(loader, tests, pattern):
    """Of each version what is read; of the newest also what is refused."""
    for version in VERSIONS[:-1]:
        earlier = type(f'Reads_{version}', (Reads,), {'version': version})
        tests.addTests(loader.loadTestsFromTestCase(earlier))
    return tests


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
