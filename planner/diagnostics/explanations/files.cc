#include "planner/diagnostics/explanations/rooms.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kExplanations[] = {
    {kFileUnreadable,
     "A recipe, or a file that it `extends`, is not there, is a folder or a device, or may not be read. Paths in "
     "`extends` are absolute "
     "or beside the file that names them, wherever the command runs.",
     "extends: [nemotron_moe_vlm_20l_mock_8r.yml]", "extends: [nemotron_moe_vlm_20l_mock_8r.yaml]",
     "Write the path as it is on disk. The message names the path that was tried."},

    {kYamlSyntax,
     "The text is not YAML, so nothing else of the file can be looked at. A value that starts with one of `*&!|>%@` "
     "needs quotes, indentation "
     "is made of spaces, and every bracket and quote is closed.",
     R"(models:
  nemotron_hybrid_moe_20l:
    pattern: *EME*)",
     R"(models:
  nemotron_hybrid_moe_20l:
    pattern: "*EME*")",
     "The caret stands where reading stopped; the slip is there or just before. Put values with special characters in "
     "quotes."},

    {kYamlFeature,
     "Recipes use the plain part of YAML: maps, lists and values. Anchors, aliases, merge keys, tags and further "
     "documents make a value "
     "stand elsewhere than where it is read, so that no diagnostic could point at it.",
     "log: &often {every_steps: 1}", "log: {every_steps: 1}",
     "Write the value out. What several recipes share goes into a file that they `extends`."},

    {kFileEncoding,
     "A recipe is UTF-8 without a byte order mark and without characters that change what a reader sees while they are "
     "not seen "
     "themselves, such as one that turns the direction of writing.",
     "name: mock\xe2\x80\xae_8r", "name: mock_8r",
     "Save the file as UTF-8, and remove the character at the caret. It often comes with text that was copied from a "
     "page."},

    {kExtendsCycle,
     "A recipe extends itself, directly or through the files that it extends, so that there is no first one to lay the "
     "others over. The "
     "notes show the way round.",
     "extends: [recipe.yaml]", "extends: [nemotron_moe_vlm_20l_mock_8r.yaml]",
     "Take one of the files out of its `extends`, and move what both need into a third that neither of them is."},

    {kTooLarge,
     "A recipe has at most 128 KiB and 64 files, with those that it extends, and 64 levels of maps and lists. Real "
     "ones stay far below; what is "
     "beyond is a mistake or an attack, and reading it would only take time.",
     "log: {every_steps: "
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "]]]]]]]]]]]]]]]]]]}",
     "log: {every_steps: 1}", "Look for a file that was generated, nested or extended by accident."},

    {kBadOverride,
     "What follows the recipe on the command line is `path.to.key=value`: words of the path with dots between them, "
     "and one value in "
     "YAML. `extends` cannot be overridden.",
     "$ plan validate recipe.yaml batch..global_samples=16", "$ plan validate recipe.yaml batch.global_samples=16",
     "Write the path as the recipe nests it. Put the whole argument in quotes for the shell when the value has blanks "
     "or brackets."},

    {kPlanUnreadable,
     "A compiled plan is not what `plan compile` wrote: it is cut off, of another format, or was changed, and its "
     "digest shows it. Nor "
     "can it be overridden: everything in it follows from the recipe.",
     "$ plan validate plan.json batch.global_samples=16", "$ plan validate plan.json",
     "Compile the recipe again, with the overrides. Never edit a plan."},
};

}  // namespace

std::span<const Explanation> FileExplanations() { return kExplanations; }

}  // namespace planwright
