#!/usr/bin/env python3
"""Validates recipes against schemas/recipe.schema.json with an independent validator (python3-jsonschema).

All shipped recipes and the recipes with lints must pass. All broken recipes must fail, except those whose mistake a
schema cannot see: UNSEEN lists them.
"""
import json
import pathlib
import re
import sys
import unittest

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA_PATH = ROOT / "schemas" / "recipe.schema.json"

# Broken recipes that the schema accepts, and what it would have to see.
UNSEEN = {
    "07_unknown_model": "a name that is not defined",
    "10_extends_cycle": "other files",
    "11_missing_file": "other files",
    "13_not_built_yet": "the letters of a pattern",
    "17_images_do_not_fit": "two numbers that do not fit",
    "23_hidden_control": "a character inside a name",
    "24_wsd_without_its_segment": "a key that one choice of another key requires",
    "25_warmup_past_the_decay": "two numbers that do not fit",
    "26_rates_and_decay_out_of_order": "two numbers that do not fit",
    "27_grid_does_not_fit": "two numbers that do not fit",
    "28_placements_overlap": "two numbers that do not fit",
    "29_bridge_to_nowhere": "a name that is not defined",
    "30_pattern_with_a_foreign_letter": "the letters of a pattern",
    "31_sizes_that_do_not_divide": "two numbers that do not fit",
    "32_missing_section": "a section that the pattern requires",
    "33_batch_does_not_divide": "two numbers that do not fit",
    "34_dp_that_is_not": "two numbers that do not fit",
    "35_expert_parallel_too_wide": "two numbers that do not fit",
    "38_conflicting_keys": "two numbers that do not fit",
    "40_two_language_modules": "the kinds of the models that modules name",
    "41_ranks_not_covered": "two numbers that do not fit",
    "42_outside_the_cluster": "two numbers that do not fit",
    "43_model_does_not_cut": "two numbers that do not fit",
    "44_bridge_the_wrong_way": "the kinds of the models that modules name",
    "45_bridge_twice": "two items of a list",
    "46_encoder_without_bridge": "modules and bridges together",
    "47_warmup_twice": "two keys that exclude each other",
    "48_two_kinds_of_attention": "the letters of a pattern",
    "49_multi_token_parts_differ": "the letters of a pattern",
    "50_segments_on_one_stage": "a pattern and a number that do not fit",
    "51_stages_that_lose_layers": "a pattern and numbers that do not fit",
    "53_nothing_trains": "several modules together",
    "55_overrides": "the command line",
    "56_lint_made_an_error": "two numbers that do not fit",
    "57_image_longer_than_a_sample": "two numbers that do not fit",
    "58_vocabulary_of_two": "two numbers that do not fit",
    "59_vocabulary_below_bytes": "two numbers that do not fit",
    "60_encoder_alone": "the kinds of the models that modules name",
    "61_experts_on_an_encoder": "the kinds of the models that modules name",
    "62_stages_on_shared_ranks": "two numbers that do not fit",
    "63_bridges_without_tokens": "a key that several bridges require",
    "64_one_token_for_two_bridges": "two numbers that do not fit",
    "65_bridge_token_outside_the_vocabulary": "two numbers that do not fit",
    "66_token_that_the_data_never_has": "two numbers that do not fit",
    "67_some_together_some_apart": "two numbers that do not fit",
    "68_packed_samples": "two numbers that do not fit",
    "69_context_parallel_that_does_not_divide": "two numbers that do not fit",
    "70_table_of_positions": "two numbers that do not fit",
    "71_table_of_odd_side": "two numbers that do not fit",
    "75_stage_layers_that_do_not_add_up": "two numbers that do not fit",
    "76_images_smaller_than_a_token": "two numbers that do not fit",
    "77_device_too_small": "memory follows from the whole plan",
    "78_step_too_long": "two numbers that do not fit",
    "79_pattern_too_long": "the letters of a pattern, counted",
    "80_too_many_modules": "modules, counted over all files",
    "82_nothing_to_recompute": "a choice and a pattern that do not fit",
    "83_image_token_that_no_bridge_fills": "two numbers that do not fit",
    "84_no_token_with_loss": "two numbers that do not fit",
    "85_model_too_large": "two numbers that do not fit",
    "86_microbatch_too_large": "two numbers that do not fit",
    "88_too_many_layers": "layers, counted over all modules",
    "89_too_many_stages": "stages, counted over all modules",
    "90_too_many_buckets": "two numbers that do not fit",
    "91_too_many_transfers": "two numbers that do not fit",
    "93_host_too_small": "the memory of a node",
    "94_more_images_than_most": "two numbers that do not fit",
    "95_dispatch_without_experts": "the kinds of the models that modules name",
    "96_launch_without_effect": "keys without effect, and words that sbatch may not get",
    "92_no_image_token": "a key that is required if a module is an encoder",
    "97_overlap_dispatch_without_experts": "a key that one kind of model has",
    "98_profile_that_is_not_there": "other files",
    "100_widths_of_published_weights": "two numbers that do not fit",
    "99_device_without_figures": "keys that a choice of another key requires",
    "100_weights_too_fine": "digits of numbers, and their sum",
    "101_image_token_of_another": "two numbers that do not fit",
    "102_prepared_for_another_model": "other files",
    "103_files_of_sources": "other files",
    "105_options_of_sbatch": "what other keys give sbatch",
    "99_evaluation_mistakes": "names, and numbers that do not fit",
    "117_weight_of_one_expert": "a key that one choice of another key requires",
    "119_two_mlps_in_one_block": "the letters of a pattern",
    "120_tied_over_two_stages": "keys of a model and of its module",
    "121_environment_and_containers_of_a_job": "names and paths inside of texts",
    "124_features_that_nobody_takes": "the letters of two patterns",
    "125_features_within_a_block": "the letters of a pattern",
    "126_features_without_an_encoder": "the letters of a pattern",
    "127_adapter_on_a_merger": "words of a list",
    "128_images_of_one_size": "two numbers that do not fit",
    "129_squares_of_shards": "keys of a model and of the data",
    "130_squares_longer_than_a_sample": "two numbers that do not fit",
    "131_features_of_two_encoders": "the letters of a pattern, and how many bridges there are",
    "134_more_stages_than_tied_ends": "two numbers that do not fit",
    "135_items_of_lists_by_override": "the command line",
}


class Yaml12Loader(yaml.SafeLoader):
    """The core schema of YAML 1.2, as editors and Planwright read it.

    PyYAML reads YAML 1.1, where `off` is false and 010 is eight.
    """


Yaml12Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
):
    Yaml12Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), list(first))
Yaml12Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value, 10))
Yaml12Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


def load(text):
    return yaml.load(text, Loader=Yaml12Loader)


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = json.loads(SCHEMA_PATH.read_text())
        cls.validator = jsonschema.Draft7Validator(cls.schema)

    def errors(self, recipe):
        return ["/".join(map(str, e.absolute_path)) + ": " + e.message for e in self.validator.iter_errors(recipe)]

    def accepts(self, text):
        return not self.errors(load(text))

    def test_is_a_schema_of_draft_07(self):
        jsonschema.Draft7Validator.check_schema(self.schema)
        self.assertEqual(self.schema["$schema"], "http://json-schema.org/draft-07/schema#")

    def test_accepts_every_recipe_that_ships(self):
        recipes = sorted((ROOT / "recipes").rglob("*.yaml"))
        self.assertGreaterEqual(len(recipes), 5)
        for path in recipes:
            with self.subTest(path=path.name):
                self.assertEqual(self.errors(load(path.read_text())), [])

    def test_every_recipe_that_ships_names_it(self):
        for path in sorted((ROOT / "recipes").rglob("*.yaml")):
            with self.subTest(path=path.name):
                named = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", path.read_text().splitlines()[0])
                self.assertIsNotNone(named)
                self.assertEqual((path.parent / named.group(1)).resolve(), SCHEMA_PATH)

    def test_accepts_recipes_with_lints(self):
        for folder in sorted((ROOT / "tests/golden/lints").iterdir()):
            with self.subTest(folder=folder.name):
                self.assertEqual(self.errors(load((folder / "recipe.yaml").read_text())), [])

    def test_refuses_broken_recipes_whose_mistake_it_can_see(self):
        passed = set()
        for folder in sorted((ROOT / "tests/golden/broken").iterdir()):
            try:
                recipe = load((folder / "recipe.yaml").read_text())
            except yaml.YAMLError:
                continue  # no schema needed
            if not self.errors(recipe):
                passed.add(folder.name)
        self.assertEqual(passed, set(UNSEEN))

    def test_says_where(self):
        recipe = load((ROOT / "tests/golden/broken/01_misspelled_key/recipe.yaml").read_text())
        errors = self.errors(recipe)
        self.assertTrue(any(e.startswith("batch: ") and "global_sample" in e for e in errors), errors)

    def test_a_file_with_extends_may_leave_out_keys(self):
        self.assertTrue(
            self.accepts("{extends: [a.yaml], batch: {micro_samples: 2}, models: {m: {hidden: 64, heads: 4}}}"))
        self.assertTrue(self.accepts("{extends: a.yaml, data: {kind: sources}}"))
        # but the keys that it has must be right for at least one kind
        self.assertFalse(self.accepts("{extends: [a.yaml], batch: {micro_sample: 2}}"))
        self.assertFalse(self.accepts("{extends: [a.yaml], models: {m: {hidden: 64, vocabulary: 9, patch: 2}}}"))
        self.assertFalse(self.accepts("{extends: [a.yaml], models: {m: {kind: radio_vit, vocabulary: 9}}}"))
        self.assertFalse(self.accepts("{extends: [a.yaml], data: {kind: mock, path: x}}"))
        self.assertFalse(self.accepts("{extends: [a.yaml], data: {kind: webdataset, shards: [x]}}"))
        self.assertFalse(self.accepts("{extends: [a.yaml], bridges: [{from: a}]}"))
        self.assertFalse(self.accepts("{extends: [a.yaml], models: {m-1: {hidden: 64}}}"))

    def test_a_library_has_complete_models(self):
        model = "kind: hybrid_lm, pattern: '*', hidden: 8, attention: {heads: 1, head_dim: 8, kv_groups: 1}"
        self.assertTrue(self.accepts("{models: {m: {%s, vocabulary: 64}}}" % model))
        self.assertFalse(self.accepts("{models: {m: {%s}}}" % model))
        self.assertFalse(self.accepts("{models: {m: {hidden: 8}}}"))

    def test_data_without_a_kind_is_mock(self):
        whole = load((ROOT / "recipes/nemotron_moe_vlm_tiny.yaml").read_text())
        del whole["data"]["kind"]
        self.assertEqual(self.errors(whole), [])
        whole["data"] = {"shards": ["a.tar"]}
        self.assertNotEqual(self.errors(whole), [])

    def test_lints_are_known_by_number(self):
        self.assertTrue(self.accepts("{extends: [a.yaml], lints: {PW0407: off, PW0210: error}}"))
        self.assertFalse(self.accepts("{extends: [a.yaml], lints: {PW0203: off}}"))
        self.assertFalse(self.accepts("{extends: [a.yaml], lints: {PW0407: silent}}"))

    def test_editors_find_help_and_defaults(self):
        batch = self.schema["properties"]["batch"]["properties"]
        self.assertEqual(batch["micro_samples"]["default"], 1)
        self.assertTrue(batch["global_samples"]["description"])
        precision = self.schema["properties"]["precision"]["properties"]
        self.assertEqual(precision["params"]["enum"], ["bf16", "fp32", "fp64"])
        self.assertEqual(batch["sequence_length"]["minimum"], 2)


if __name__ == "__main__":
    sys.exit(unittest.main())
