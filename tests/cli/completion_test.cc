// `plan completion`: runs the scripts in real shells, which get the words of a line and the cursor's position.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Installed;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using testing::ProgramResult;

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

class Completion : public testing::PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    Write("r.yaml", "name: r\n");
    Write("notes.txt", "");
    std::filesystem::create_directory(folder_ + "/models");
  }

  // `words`: as bash splits them, with `=` as a word of its own. The cursor is in the last one.
  std::vector<std::string> Bash(const std::string& words) {
    const std::string script = Write(
        "complete.bash", "cd '" + folder_ + "'\nsource <('" + InBuild("bin/plan") +
                             "' completion bash)\ncomplete -p plan >/dev/null || exit 9\n"
                             "COMP_WORDS=('" +
                             InBuild("bin/plan") + "' " + words +
                             ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_plan\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const ProgramResult result = Shell("bash --norc " + script);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return LinesOf(result.out);
  }

  // `words`: as zsh splits them, with a=b as one word. Prints what the completion system is asked to add.
  std::vector<std::string> Zsh(const std::string& words, const std::string& prefix) {
    const std::string script = Write(
        "complete.zsh", "cd '" + folder_ +
                            "'\ncompdef() { [[ $1 == _plan && $2 == plan ]] || print bad compdef }\n_files() { "
                            "print -rl -- files $@ }\n"
                            "_describe() { print -rl -- ${(P)2%%:*} }\n"
                            "compadd() {\n  local -a kept; local taken=0 a\n"
                            "  while (( $# )); do case $1 in --) shift; kept=($@); break;; -P|-S) shift 2;; *) "
                            "shift;; esac; done\n  print -rl -- $kept\n}\n"
                            "source <('" +
                            InBuild("bin/plan") + "' completion zsh)\nwords=('" + InBuild("bin/plan") + "' " + words +
                            ")\nCURRENT=$#words\n"
                            "PREFIX='" +
                            prefix + "'\n_plan\nexit 0\n");
    const ProgramResult result = Shell("zsh -f " + script);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return LinesOf(result.out);
  }
};

TEST_F(Completion, BashOffersCommandsAndOptions) {
  EXPECT_THAT(Bash("sh"), ElementsAre("show"));
  EXPECT_THAT(Bash("''"), IsSupersetOf({"validate", "compile", "show", "diff", "launch", "status", "report",
                                        "checkpoint", "weights", "explain", "completion", "--help"}));
  EXPECT_THAT(Bash("launch r.yaml --ste"), ElementsAre("--steps"));
  EXPECT_THAT(Bash("show r.yaml ranks --"),
              IsSupersetOf({"--json", "--html", "--at", "--role", "--routing", "--help"}));
  EXPECT_THAT(Bash("nonsense ''"), IsEmpty());
}

TEST_F(Completion, BashOffersRecipesPlansAndFolders) {
  EXPECT_THAT(Bash("validate ''"), ::testing::UnorderedElementsAre("models", "r.yaml"));
  Write("p.json", "{}");
  EXPECT_THAT(Bash("show p"), ElementsAre("p.json"));
  EXPECT_THAT(Bash("diff r.yaml p"), IsSupersetOf({"p.json", "precision.params="}))
      << "another recipe, or a change to the first";
  EXPECT_THAT(Bash("compile r.yaml -o n"), ElementsAre("notes.txt"));
  EXPECT_THAT(Bash("launch r.yaml --run-dir ''"), ElementsAre("models"));
}

TEST_F(Completion, BashOffersSubjectsKindsAndChoices) {
  EXPECT_THAT(Bash("show r.yaml b"), ElementsAre("bridges", "budget"));
  EXPECT_THAT(Bash("show --json r.yaml b"), ElementsAre("bridges", "budget"));
  EXPECT_THAT(Bash("explain PW020"), Contains("PW0203"));
  EXPECT_THAT(Bash("explain PW0203 PW08"), Contains("PW0801"));
  EXPECT_THAT(Bash("explain micro_"), IsSupersetOf({"micro_samples", "micro_batch_size"}));
  EXPECT_THAT(Bash("explain bub"), ElementsAre("bubble"));
  EXPECT_THAT(Bash("help la"), ElementsAre("launch"));
  EXPECT_THAT(Bash("help launch la"), ElementsAre("launch"));
  EXPECT_THAT(Bash("launch r.yaml --device c"), ElementsAre("cpu", "cuda"));
  EXPECT_THAT(Bash("launch r.yaml --device = cu"), ElementsAre("cuda"));
  EXPECT_THAT(Bash("completion b"), ElementsAre("bash"));
  EXPECT_THAT(Bash("checkpoint ''"), ElementsAre("ls", "show", "verify"));
  EXPECT_THAT(Bash("checkpoint verify m"), ElementsAre("models"));
  EXPECT_THAT(Bash("checkpoint verify models --a"), ElementsAre("--all"));
  EXPECT_THAT(Bash("data ''"), ElementsAre("index", "stats", "trace"));
  EXPECT_THAT(Bash("data index r"), ElementsAre("r.yaml"));
  EXPECT_THAT(Bash("import m"), ElementsAre("models"));
  EXPECT_THAT(Bash("tune r"), ElementsAre("r.yaml"));
  EXPECT_THAT(Bash("tune r.yaml --write n"), ElementsAre("notes.txt"));
  EXPECT_THAT(Bash("init --model nemotron_moe_vlm_2"), ElementsAre("nemotron_moe_vlm_20l"));
  EXPECT_THAT(Bash("export models --like m"), ElementsAre("models"));
  EXPECT_THAT(Bash("export models --dtype b"), ElementsAre("bf16"));
}

TEST_F(Completion, BashOffersTheKeysOfTheRecipe) {
  EXPECT_THAT(Bash("validate '" + kTiny + "' batch.g"), ElementsAre("batch.global_samples="));
  EXPECT_THAT(Bash("tune '" + kTiny + "' batch.g"), ElementsAre("batch.global_samples="));
  EXPECT_THAT(Bash("data index '" + kTiny + "' batch.g"), ElementsAre("batch.global_samples="));
  EXPECT_THAT(Bash("validate '" + kTiny + "' modules.language.parallel.t"),
              ElementsAre("modules.language.parallel.tp="));
  EXPECT_THAT(Bash("show '" + kTiny + "' ranks batch.global_samples = 4 log.e"), ElementsAre("log.every_steps="));
  EXPECT_THAT(Bash("validate '" + kTiny + "' precision.params ="), ElementsAre("bf16", "fp32", "fp64"));
  EXPECT_THAT(Bash("validate '" + kTiny + "' precision.params = fp6"), ElementsAre("fp64"));
  EXPECT_THAT(Bash("validate '" + kTiny + "' models.hybrid_moe_tiny.l"), IsEmpty()) << "layers is a key of encoders";
  EXPECT_THAT(Bash("diff r.yaml '" + kTiny + "' data.im"), ElementsAre("data.image_token=", "data.image_grids="));
}

TEST_F(Completion, ZshOffersTheSame) {
  if (!Installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_THAT(Zsh("''", ""), IsSupersetOf({"validate", "show", "diff", "completion"}));
  EXPECT_THAT(Zsh("show r.yaml ''", ""), IsSupersetOf({"ranks", "bridges", "budget"}));
  EXPECT_THAT(Zsh("launch r.yaml --", "--"), IsSupersetOf({"--steps", "--device", "--help"}));
  EXPECT_THAT(Zsh("launch r.yaml --device ''", ""), ElementsAre("cpu", "cuda"));
  EXPECT_THAT(Zsh("explain ''", ""), IsSupersetOf({"PW0203", "micro_samples", "bubble"}));
  EXPECT_THAT(Zsh("help ''", ""), IsSupersetOf({"launch", "explain"}));
  EXPECT_THAT(Zsh("checkpoint ''", ""), ElementsAre("ls", "show", "verify"));
  EXPECT_THAT(Zsh("checkpoint ls ''", ""), Contains("files"));
  EXPECT_THAT(Zsh("data ''", ""), ElementsAre("index", "stats", "trace"));
  EXPECT_THAT(Zsh("data index '" + kTiny + "' batch.", "batch."), Contains("batch.global_samples="));
  EXPECT_THAT(Zsh("validate ''", ""), Contains("files"));
  EXPECT_THAT(Zsh("validate '" + kTiny + "' batch.", "batch."), Contains("batch.global_samples="));
  EXPECT_THAT(Zsh("validate '" + kTiny + "' precision.params=", "precision.params="),
              ElementsAre("bf16", "fp32", "fp64"));
  EXPECT_THAT(Zsh("validate '" + kTiny + "' ''", ""), Not(Contains("models.hybrid_moe_tiny.layers=")));
}

// An interactive shell: types a text and a tab, and reads the line that the editor then holds (not the terminal's
// echo). Types nothing before the line editor reads.
TEST_F(Completion, ZshCompletesAtItsPrompt) {
  if (!Installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  Write(".zshrc",
        "PS1=; bindkey -e; unsetopt beep\nautoload -U compinit; compinit -u -d '" + folder_ + "/dump'\nplan() { '" +
            InBuild("bin/plan") +
            "' \"$@\" }\n"
            "source <(plan completion zsh)\nzle-line-init() { print -rn -- '<reads>' }\nzle -N zle-line-init\n"
            "show-line() { print -rn -- \"<holds $BUFFER>\" }\nzle -N show-line; bindkey '^T' show-line\n");
  const std::string script =
      Write("prompt.zsh", "zmodload zsh/zpty || exit 77\ncd '" + folder_ + "'\nzpty shell env ZDOTDIR='" + folder_ +
                              "' zsh -d -i\nzpty -r -m shell text '*<reads>*'\n"
                              "for line in 'complet\\tb' 'validate r.y' 'validate r.yaml batch.glo' 'validate r.yaml "
                              "precision.params=fp6' 'launch r.yaml --device=cu' 'launch r.yaml --run-dir mod'; do\n"
                              "zpty -n -w shell $'\\025plan '${(g::)line}$'\\t\\024'\nzpty -r -m shell text "
                              "'*<holds *>*'\nprint -r -- $text\ndone\nzpty -d shell\n");
  const ProgramResult result = Shell("timeout 600 zsh -f " + script);
  if (result.status == 77) GTEST_SKIP() << "zsh has no zpty";
  for (const char* held : {"completion bash ", "validate r.yaml ",
                           "validate r.yaml batch.global_samples=", "validate r.yaml precision.params=fp64 ",
                           "launch r.yaml --device=cuda ", "launch r.yaml --run-dir models/"})
    EXPECT_THAT(result.out, ::testing::HasSubstr(std::string("<holds plan ") + held + ">")) << result.err;
}

// What the scripts ask. bash parts a=b at the `=`, zsh does not.
TEST_F(Completion, TheProgramIsAsked) {
  const auto lines = [&](const std::string& words) {
    const ProgramResult result = Plan("complete " + words);
    EXPECT_EQ(result.status, 0) << words;
    EXPECT_EQ(result.err, "") << words;
    return LinesOf(result.out);
  };
  EXPECT_THAT(lines("sh"), ElementsAre("show\tprints one part of the plan, or draws all of it as a page"));
  EXPECT_THAT(lines(""), Contains("--version\tprint the version"));
  EXPECT_THAT(lines("launch r.yaml --ste"), ElementsAre("--steps\tstop after N steps"));
  EXPECT_THAT(lines("compile -"), IsSupersetOf({"-h\tprint this help", "--help\tprint this help"}));
  EXPECT_THAT(lines("validate ''"), ElementsAre(":files .yaml .yml .json"));
  EXPECT_THAT(lines("launch r.yaml --run-dir ''"), ElementsAre(":files /"));
  EXPECT_THAT(lines("compile r.yaml -o x"), ElementsAre(":files"));
  EXPECT_THAT(lines("launch r.yaml --steps 1"), IsEmpty()) << "any number";
  for (const char* value : {"--device cu", "--device=cu", "--device = cu"})
    EXPECT_THAT(lines(std::string("launch r.yaml ") + value), ElementsAre("cuda")) << value;
  for (const char* value : {"precision.params=fp6", "precision.params = fp6"})
    EXPECT_THAT(lines("validate " + kTiny + " " + value), ElementsAre("fp64")) << value;
  EXPECT_THAT(lines("validate " + kTiny + " batch.glo"), ElementsAre(":nospace", "batch.global_samples="));
  EXPECT_THAT(lines("init --model nemotron_moe_vlm_2"), ElementsAre("nemotron_moe_vlm_20l"));
  for (const char* nothing : {"nonsense ''", "validate none.yaml batch.g", "validate none.yaml none=", "validate = =",
                              "launch r.yaml --nonsense=", "help launch --json=", "validate none.yaml a=b=c"})
    EXPECT_THAT(lines(nothing), ::testing::Each(::testing::StartsWith(":"))) << nothing;
  EXPECT_THAT(Plan("help").out, Not(::testing::HasSubstr("  complete "))) << "people do not call it";
}

// Each line that the shells get is one candidate, whatever a recipe is called and holds.
TEST_F(Completion, ControlCharactersAreNoLines) {
  Write("odd\nname.yaml", "name: r\nmodules:\n  \"a\\nb\": {}\n");
  for (const std::string& word : LinesOf(Plan("complete validate \"$(printf 'odd\\nname.yaml')\" ''").out))
    EXPECT_TRUE(word.starts_with(":") || word.ends_with("=")) << word;
}

TEST_F(Completion, UsageIsChecked) {
  EXPECT_EQ(Plan("completion").status, 2);
  EXPECT_EQ(Plan("completion fish").status, 2);
  EXPECT_EQ(Plan("completion keys " + folder_ + "/none.yaml").status, 2);
  EXPECT_EQ(Plan("completion bash extra").status, 2);
}

}  // namespace
}  // namespace planwright
