// Each mistake in a statement that neither the checker of statements nor the table of draws sees moves a number of the
// oracle. The deriver makes blocks of the mistaken statement, the planner checks the plan by all rules but V11, which
// would compare with the right statement, and the executor runs it: something refuses it by name, or an output or a
// gradient is off by more than its bound. A mistake that changes no plan of any layout is none.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/compile/compile.h"
#include "planner/plan/statement/statement_problems.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/rules.h"
#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/mutant_run.h"
#include "tests/numerics/mutated_plan.h"
#include "tests/numerics/oracle.h"
#include "tests/numerics/run.h"
#include "tests/plan/statement/small_modules.h"
#include "tests/plan/statement/statement_mutants.h"
#include "tests/support/canonical_plan.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

// A recipe of an oracle's model. On one rank the first step runs here, and is compared with the oracle. On several
// ranks it is launched, but only for what no other case sees.
struct Case {
  std::string name;
  std::vector<std::string> layout;
  std::string recipe;
  Plan plan;
  std::string canonical;

  Case(std::string its_name, std::vector<std::string> its_layout, std::string its_recipe)
      : name(std::move(its_name)), layout(std::move(its_layout)), recipe(std::move(its_recipe)) {
    Diagnostics problems;
    const auto read = ReadRecipe(InSource(recipe), layout, problems);
    auto compiled = read ? CompileRecipe(*read, problems) : std::nullopt;
    if (!compiled) {
      ADD_FAILURE() << name << ": " << problems.sorted().at(0).message;
      return;
    }
    plan = *std::move(compiled);
    canonical = CanonicalDigest(plan);
  }
};

std::vector<Case> CasesOfDecoders() {
  const auto recipe = [](const char* name) { return absl::StrCat("tests/golden/", name, "_oracle/oracle.yaml"); };
  std::vector<Case> all;
  all.emplace_back("llama", std::vector<std::string>(), recipe("llama"));
  all.emplace_back("qwen3", std::vector<std::string>(), recipe("qwen3"));
  all.emplace_back("experts", std::vector<std::string>(), recipe("qwen3_moe"));
  all.emplace_back("gathered tokens", Join(LanguageOn(0, 2, 1, 2), {"modules.language.parallel.dispatch=all_gather"}),
                   recipe("qwen3_moe"));
  // More ranks than key heads.
  all.emplace_back("llama on tp 4", LanguageOn(0, 4, 4, 1), recipe("llama"));
  all.emplace_back("qwen3 on tp 4", LanguageOn(0, 4, 4, 1), recipe("qwen3"));
  return all;
}

// Each line `when` and each value that only some layouts or data have is in some case.
const std::vector<Case>& Cases(const std::string& kind) {
  static const std::vector<Case> decoders = CasesOfDecoders();
  static const std::vector<Case> cases = [] {
    const std::string batch = ::testing::TempDir() + "packed_oracle.safetensors";
    WritePackedBatch(batch);
    const std::vector<std::string> experts = Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2));
    std::vector<Case> all;
    const auto add = [&](const char* name, std::vector<std::string> layout) {
      all.emplace_back(name, layout, kOracleRecipe);
    };
    add("one rank", {});
    all.emplace_back("published model", std::vector<std::string>(), kPublishedOracleRecipe);
    add("packed documents", {"data.packed_documents=true", "batch.sequence_length=96", "batch.global_samples=1",
                             "budget.train_samples=1", "data.path=" + batch});
    add("gathered tokens", Join(experts, {"modules.language.parallel.dispatch=all_gather"}));
    add("encoder on cp 2", Join(EncoderOn(2, 1), Parallel("radio_encoder", {{"cp", 2}}), LanguageOn(2, 1, 1, 1)));
    add("frozen language model", {"modules.language.train.backbone=frozen"});
    add("frozen encoder", {"modules.radio_encoder.train.backbone=frozen"});
    return all;
  }();
  return kind == "decoder" ? decoders : cases;
}

// What the planner refuses of a plan with this statement. "": nothing.
std::string Refusal(const Plan& plan, const ModelStatement& statement) {
  for (const Violation& violation : VerifyPlan(plan)) {
    if (violation.rule != "V11") return absl::StrCat(violation.rule, ": ", violation.message);
  }
  const PlanIndex index(plan);
  const auto found = VerifyForwardGraphs(index, CallsOfMicrobatches(index), [&](const Module& module) {
    return module.kind == statement.kind ? &statement : StatementOf(module);
  });
  return found.empty() ? "" : "V11: " + found.front().message;
}

// What sees the statement in this case, without a launch: a word, and the rest. "same": it makes the same plan. "":
// nothing sees it. The oracle trains everything.
std::string JudgeIn(const Case& original, const ModelStatement& statement, const std::string& folder) {
  const Plan plan = WithStatement(original.plan, statement);
  if (const std::string why = Refusal(plan, statement); !why.empty()) return "refused " + why;
  if (CanonicalDigest(plan) == original.canonical) return "same";
  const auto is_frozen = [](const Module& module) { return !module.trained(); };
  if (plan.world_size > 1 || std::any_of(plan.modules.begin(), plan.modules.end(), is_frozen)) return "";
  FirstStep step = RunFirstStep(plan, folder);
  if (!step.failure.empty()) return "failed " + step.failure;
  const OracleDifferences found = CompareWithOracle(std::move(step), original.recipe);
  return found.beyond.empty() ? "" : absl::StrCat("moved ", found.beyond.front());
}

// The first thing that sees the statement, with the case. "same": all its plans are those of the right statement.
std::string Judge(const ModelStatement& statement, const std::string& folder) {
  bool same = true;
  for (const Case& original : Cases(statement.kind)) {
    const std::string seen = JudgeIn(original, statement, folder);
    if (!seen.empty() && seen != "same") return absl::StrCat(seen, " (", original.name, ")");
    same &= seen == "same";
  }
  return same ? "same" : "";
}

// In a process of its own, as the deriver ends it where a statement makes no sense.
std::string JudgeApart(const ModelStatement& statement) {
  std::string folder = ::testing::TempDir() + "mutantXXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  const auto text = [&](const char* name) {
    std::stringstream all;
    all << std::ifstream(folder + name).rdbuf();
    return all.str();
  };
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const bool quiet = std::freopen((folder + "/stdout").c_str(), "w", stdout) != nullptr &&
                       std::freopen((folder + "/stderr").c_str(), "w", stderr) != nullptr;
    std::setvbuf(stderr, nullptr, _IONBF, 0);  // abort() leaves what is buffered
    std::ofstream(folder + "/seen") << Judge(statement, folder);
    _exit(quiet ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  std::string seen;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    seen = text("/seen");
  } else {
    const std::string said = text("/stderr");
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && said.starts_with("planwright bug: ")) << said;
    seen = "stopped " + said.substr(0, said.find('\n'));
  }
  std::filesystem::remove_all(folder);
  return seen;
}

// What the statement says, where the first two terms of a sum may change places: that gives the same bits.
std::vector<std::string> LinesOfSums(ModelStatement statement) {
  const auto sort = [](StatedPiece& piece) {
    for (StatedCompute& compute : piece.computes) {
      const bool sum = compute.kind == OpKind::kAdd || compute.kind == OpKind::kAddResidualBias;
      if (sum && compute.inputs.size() > 1 && compute.inputs[1] < compute.inputs[0])
        std::swap(compute.inputs[0], compute.inputs[1]);
    }
  };
  sort(statement.embed);
  for (auto& [letter, piece] : statement.layers) sort(piece);
  sort(statement.head);
  return StatementLines(statement);
}

struct Unseen {
  size_t number = 0;  // in MutantsOf
  StatementMutant mutant;
};

// Of every `step`-th mutant, from `first`: those that neither the checker of statements nor the table of draws sees,
// and that are not the same sum.
std::vector<Unseen> UnseenMutants(const ModelStatement& statement, size_t first, size_t step) {
  const std::string draws = DrawTables(statement);
  const std::vector<std::string> lines = LinesOfSums(statement);
  std::vector<Unseen> unseen;
  std::vector<StatementMutant> mutants = MutantsOf(statement);
  for (size_t i = first; i < mutants.size(); i += step) {
    const ModelStatement& mistaken = mutants[i].statement;
    if (!StatementProblems(mistaken).empty() || DrawTables(mistaken) != draws) continue;
    if (LinesOfSums(mistaken) != lines) unseen.push_back({i, std::move(mutants[i])});
  }
  return unseen;
}

// What a launch of the cases on several ranks sees; "": nothing.
std::string JudgeLaunched(const std::string& kind, const Unseen& unseen) {
  ::setenv("PLANWRIGHT_FAULT", ("statement:" + MutantName(kind, unseen.number)).c_str(), 1);
  std::string seen;
  for (const Case& original : Cases(kind)) {
    if (original.plan.world_size == 1 || !seen.empty()) continue;
    const TrainingRun run = Launch({original.recipe, original.layout, 0, "faulty_executor"});
    if (run.exit_code != 0) {
      const size_t error = run.output.find("error: ");
      seen = absl::StrCat("failed ", run.output.substr(std::min(error, run.output.size())), " (", original.name, ")");
      continue;
    }
    const auto& rows = run.steps.at(0).bridge_mean_square;
    const OracleDifferences found = CompareWithOracle(
        {run.values_first, run.gradients_first, run.steps[0].loss, rows.empty() ? 0 : rows.begin()->second},
        original.recipe);
    if (!found.beyond.empty()) seen = absl::StrCat("moved ", found.beyond.front(), " (", original.name, ")");
  }
  ::unsetenv("PLANWRIGHT_FAULT");
  return seen;
}

class StatementOracle : public ::testing::TestWithParam<std::string> {};

void ExpectSeen(const std::string& kind, size_t first, size_t step) {
  const ModelStatement& statement = *StatementOf(kind);
  ASSERT_EQ(JudgeApart(statement), "same");
  const std::vector<Unseen> mutants = UnseenMutants(statement, first, step);
  EXPECT_FALSE(mutants.empty());
  std::map<std::string, int> counts;
  for (const Unseen& unseen : mutants) {
    const StatementMutant& mutant = unseen.mutant;
    std::string seen = JudgeApart(mutant.statement);
    if (seen.empty()) seen = JudgeLaunched(kind, unseen);
    EXPECT_NE(seen, "") << "nothing sees piece " << mutant.piece << ": " << mutant.name;
    ++counts[seen.substr(0, seen.find(' '))];
  }
  for (const auto& [seen, count] : counts) ::testing::Test::RecordProperty("mutants " + seen, count);
  std::string all;
  for (const auto& [seen, count] : counts) absl::StrAppend(&all, ", ", seen, " ", count);
  std::printf("%zu of %zu mutants%s\n", mutants.size(), MutantsOf(statement).size(), all.c_str());
}

TEST_P(StatementOracle, SeesWhatNothingElseSees) { ExpectSeen(GetParam(), 3, 12); }
TEST_P(StatementOracle, SoakSeesAllThatNothingElseSees) { ExpectSeen(GetParam(), 0, 1); }

INSTANTIATE_TEST_SUITE_P(Kinds, StatementOracle, ::testing::ValuesIn(ModelKinds()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace planwright::testing
