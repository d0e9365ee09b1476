// PW00xx: recipe files, YAML, overrides and compiled plans.
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kFilesExplanations[] = {
    {kFileUnreadable,
     "A recipe, or a file that it extends, does not exist, is not a regular file, or cannot be opened. A path in "
     "`extends` is absolute or relative to the file that contains it. It does not depend on the current directory.",
     "extends: [nemotron_moe_vlm_20l_mock_8r.yml]", "extends: [nemotron_moe_vlm_20l_mock_8r.yaml]",
     "Correct the path. The message shows the path that was tried."},

    {kYamlSyntax,
     "The text is not valid YAML, so the rest of the file cannot be checked. A value that starts with one of `*&!|>%@` "
     "needs quotes. Indentation consists of spaces. Every bracket and quote is closed.",
     R"(models:
  nemotron_hybrid_moe_20l:
    pattern: *EME*
lints: {PW0704: off})",
     R"(models:
  nemotron_hybrid_moe_20l:
    pattern: "*EME*"
lints: {PW0704: off})",
     "The caret marks the place where the parser stopped. The mistake is at this place or just before it. Put values "
     "with special characters in quotes."},

    {kYamlFeature,
     "Recipes use only maps, lists and values of YAML. With anchors, aliases, merge keys, tags or a second document, a "
     "value is written at one place and used at another. A diagnostic could then not point at the line to change.",
     "log: &often {every_steps: 1}", "log: {every_steps: 1}",
     "Write the value out. Put parts that several recipes share into a file, and extend that file."},

    {kFileEncoding,
     "A recipe is UTF-8 without a byte order mark. It must not contain invisible characters that change how the text "
     "looks, such as a character that reverses the writing direction.",
     "name: mock\xe2\x80\xae_8r", "name: mock_8r",
     "Save the file as UTF-8, and remove the character at the caret. Such characters often come with text that was "
     "copied from a web page."},

    {kExtendsCycle,
     "A recipe extends itself, directly or through the files that it extends. Then no file is the first one, and the "
     "files cannot be merged in order. The notes show the circle.",
     "extends: [recipe.yaml]", "extends: [nemotron_moe_vlm_20l_mock_8r.yaml]",
     "Remove one `extends` of the circle. Move what both files need into a third file, and extend that one."},

    {kTooLarge,
     "A recipe exceeds a limit. Together with the files that it extends it has at most 128 KiB and 64 files, 64 levels "
     "of maps and lists, and 16 modules. Real recipes are far below these limits; a larger one is a mistake or an "
     "attack.",
     R"(log:
  every_steps:
    [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
    1
    ]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]])",
     "log: {every_steps: 1}", "Look for a file that was generated, nested or extended by mistake."},

    {kBadOverride,
     "An argument after the recipe on the command line is not of the form `path.to.key=value`. The path consists of "
     "keys with dots between them, and the value is YAML. `extends` cannot be overridden.",
     "$ plan validate recipe.yaml batch..global_samples=16", "$ plan validate recipe.yaml batch.global_samples=16",
     "Write the keys in the order in which the recipe nests them. If the value has spaces or brackets, put the whole "
     "argument in quotes for the shell."},

    {kPlanUnreadable,
     "A compiled plan is not what `plan compile` wrote: it is incomplete, has another format, or was changed, so that "
     "its digest does not match. A plan also accepts no overrides, because all of its content follows from the recipe.",
     "$ plan validate plan.json batch.global_samples=16", "$ plan validate plan.json",
     "Compile the recipe again, with the overrides. Never edit a plan."},

    {kProfileUnusable,
     "`cluster.profile` names a file of times that `plan measure` wrote, by which steps are predicted. It is not "
     "there, is damaged, is of another version, was measured on another device than `cluster.gpu`, or has no times of "
     "this plan's instructions in its precision.",
     "cluster: {profile: not_measured_yet.json}", "cluster: {gpu: h200_sxm}",
     "Measure on a machine with this device, or remove `profile`. docs/measure.md has the command."},
};

}  // namespace

std::span<const Explanation> FileExplanations() { return kFilesExplanations; }

}  // namespace planwright
