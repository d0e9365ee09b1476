// Inputs whose data names files: patterns that make millions of names, and lists as long as a recipe may be.
#include <string>
#include <vector>

#include "planner/recipe/yaml/yaml_tree.h"
#include "tests/cli/any_bytes_inputs.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

// A recipe with this list of sources, and what else its end says.
std::string WithSources(const std::string& sources, const std::string& end = "") {
  return "extends: [" + InSource("recipes/icons_8r_toy.yaml") + "]\ndata: {kind: sources, sources: [" + sources +
         "]}\n" + end;
}

std::string Shards(const std::string& pattern) { return "{kind: webdataset, shards: \"" + pattern + "\"}, "; }

// As many as a recipe has room for.
template <typename Item>
std::string AsMany(Item item, size_t room = kLargestRecipe - 512) {
  std::string text;
  for (int i = 0; text.size() + 256 < room; ++i) text += item(i);
  return text;
}

}  // namespace

void PatternsOfManyFiles(const Inputs& in) {
  const std::string million = "{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}";
  std::string forty;
  for (int i = 0; i < 40; ++i) forty += Shards("s" + std::to_string(i) + million);
  const std::string many = in.Write("many.yaml", WithSources(forty));
  in.Refused({"validate", many});
  // Advice reads the recipe again and again.
  in.Refused({"validate", many, "batch.global_samples=7"});
  in.Refused({"validate", in.Write("sets.yaml", WithSources(forty,
                                                            "evaluation: {every_samples: 64, sets: [{name: a, "
                                                            "samples: 8, sources: [" +
                                                                forty + "]}]}\n"))});
  const auto every = [&](const std::string& name, const std::string& pattern) {
    const auto item = [&](int i) { return Shards(pattern + std::to_string(i)); };
    in.Refused({"validate", in.Write(name, WithSources(AsMany(item)))}, pattern);
  };
  every("brace.yaml", million + "x");
  every("folders.yaml", "d" + million + "/x");
  every("all.yaml", "/{usr,lib,bin}/{0..9}{0..9}*");
  every("deep.yaml", "/*/*/*/*/*");
  const size_t room = kLargestRecipe - 512;
  for (const std::string& pattern :
       {"{" + Times(room / 2, ",") + "}" + Times(room / 2, "x"), Times(room, "*/"), Times(room, "{"),
        Times(room, "{a,"), Times(room, "{a,b}"), Times(room, "[a]"), "{" + Times(room - 8, "{1..2},") + "}",
        Times(4000, "*/") + "x", "{0..999999}" + Times(4000, "x"), std::string("{0..999999999999999999}*")})
    in.Refused({"validate", in.Write("one.yaml", WithSources(Shards(pattern)))}, pattern);
}

void ListsOfSources(const Inputs& in) {
  const auto refused = [&](const std::string& name, const std::string& text) {
    in.Refused({"validate", in.Write(name, text)}, name);
  };
  refused("weights.yaml", WithSources(AsMany([](int i) {
            return "{kind: webdataset, shards: a, weight: " + std::string(i > 0 ? "1.0e-7" : "1.0e8") + "}, ";
          })));
  refused("types.yaml", WithSources(AsMany([](int) { return "{kind: webdataset, shards: 1, weight: x}, "; })));
  refused("names.yaml", WithSources(AsMany([](int) { return "{name: a, kind: webdataset, shards: a}, "; })));
  refused("tokens.yaml",
          WithSources(AsMany([](int i) { return "{kind: tokens, path: a" + std::to_string(i) + "}, "; })));
  const auto sets = [](const std::string& of_set, size_t room) {
    return "evaluation: {every_samples: 64, sets: [" +
           AsMany([&](int i) { return "{name: s" + std::to_string(i) + ", samples: 8, " + of_set + "}, "; }, room) +
           "]}\n";
  };
  refused("sets.yaml", "extends: [" + InSource("recipes/nemotron_moe_vlm_tiny.yaml") + "]\n" +
                           sets("seed: 1234", kLargestRecipe - 512));
  const std::string half = AsMany([](int) { return Shards("a"); }, kLargestRecipe / 2);
  refused("both.yaml", WithSources(half, sets("sources: [" + Shards("a") + "]", kLargestRecipe / 2 - 512)));
  const std::string most = AsMany([](int) { return Shards("a"); }, kLargestRecipe - 8192);
  refused("few_sets.yaml", WithSources(most, sets("sources: [" + Shards("a") + "]", 6000)));
}

}  // namespace planwright::testing
