// What `plan explain` finds: everything by its name, and questions by their words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/text/text.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/explain/glossary.h"
#include "planner/recipe/explain/pages.h"
#include "planner/recipe/explain/search.h"
#include "planner/recipe/explain/subjects.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/units.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<Subject>& Subjects() {
  static const std::vector<Subject> subjects = AllSubjects();
  return subjects;
}

// The names of what is found, of one type.
std::vector<std::string> Named(const std::string& name, SubjectType type) {
  std::vector<std::string> names;
  for (const Subject* subject : FindByName(name, Subjects())) {
    if (subject->type == type) names.push_back(subject->name);
  }
  return names;
}

std::vector<std::string> Found(const std::string& question) {
  std::vector<std::string> names;
  for (const Subject* subject : Search(question, Subjects(), 8)) names.push_back(subject->name);
  return names;
}

// In front of pages that are not there.
const std::string kDocs = "docs/";

TEST(Explain, FindsEveryKeyByItsPathAndByItsLastWord) {
  for (const KeySpec& key : RecipeKeys()) {
    const std::string path(key.path), word(WordOf(key));
    EXPECT_THAT(Named(path, SubjectType::kKey), Contains(path));
    if (word[0] != '<') EXPECT_THAT(Named(word, SubjectType::kKey), Contains(path)) << word;
    if (key.choices.empty() || key.type == KeyType::kLintLevels) continue;
    for (const std::string& choice : ChoicesOf(key)) EXPECT_THAT(Named(choice, SubjectType::kChoice), Contains(choice));
  }
  EXPECT_THAT(Named("learning rate peak", SubjectType::kKey), Contains("budget.learning_rate.peak"));
}

TEST(Explain, FindsEveryKindByItsName) {
  for (DiagnosticKind kind : AllKinds()) {
    EXPECT_EQ(FindByName(KindNumber(kind), Subjects()), FindByName(KindName(kind), Subjects())) << KindName(kind);
    EXPECT_FALSE(FindByName(KindNumber(kind), Subjects()).empty());
  }
  for (const ModelStatement& statement : BuiltInStatements()) {
    for (const auto* layers : {&statement.layer_kinds, &statement.unbuilt}) {
      for (const StatedLayer& layer : *layers) {
        const std::string word = layer.word.empty() ? layer.title : layer.word;
        EXPECT_THAT(Named(word, SubjectType::kLayer), Contains(word));
        EXPECT_THAT(Named(std::string(1, layer.letter), SubjectType::kLayer), Contains(word));
      }
    }
  }
  for (const OpInfo& info : AllOps()) {
    const std::string name(info.name);
    ASSERT_THAT(Named(name, SubjectType::kOperation), Contains(name));
    for (const Subject& subject : Subjects()) {
      if (subject.type == SubjectType::kOperation && subject.name == name)
        EXPECT_GT(subject.text.size(), name.size() + 60) << "the section of docs/operations.md is missing: " << name;
    }
  }
  for (const ExitStatusRow& row : ExitStatuses())
    EXPECT_THAT(FindByName("exit status " + std::to_string(row.number), Subjects()), Not(IsEmpty()));
}

TEST(Explain, AnswersEveryWordOfOtherProgramsHoweverItIsWritten) {
  std::set<std::string> paths;
  for (const KeySpec& key : RecipeKeys()) paths.insert(std::string(key.path));
  ASSERT_GT(FieldWords().size(), 400u);
  for (const FieldWord& word : FieldWords()) {
    const std::string name(word.word), option = "--" + absl::StrReplaceAll(name, {{"_", "-"}});
    EXPECT_THAT(Named(name, SubjectType::kFieldWord), Contains(name));
    EXPECT_THAT(Named(option, SubjectType::kFieldWord), Contains(name)) << option;
    for (const std::string& key : KeysOfWord(word)) {
      EXPECT_TRUE(paths.contains(key)) << name << ": " << key;
      EXPECT_THAT(AnswerOf(word), HasSubstr(key));
    }
    if (word.unit == FieldUnit::Steps) EXPECT_THAT(AnswerOf(word), HasSubstr("times batch.global_samples"));
    // Words without a key, or whose value follows, say what holds.
    if (word.unit == FieldUnit::Follows || word.unit == FieldUnit::None)
      EXPECT_THAT(AnswerOf(word), HasSubstr(Cat(": ", word.why))) << name;
  }
}

TEST(Explain, TakesWordsOfOtherProgramsForNoKeys) {
  for (const char* written : {"data_path", "--data-path"}) {
    const std::vector<const Subject*> found = FindByName(written, Subjects());
    ASSERT_EQ(found.size(), 1U) << written;
    EXPECT_EQ(found[0]->type, SubjectType::kFieldWord);
  }
  EXPECT_EQ(FindByName("data.path", Subjects()).at(0)->type, SubjectType::kKey);
}

TEST(Explain, AnswersWordsWithTheMapsOfTheirPrograms) {
  const std::pair<const char*, const char*> words[] = {{"training.seq_len", "seq_len"},
                                                       {"parallelism.tensor_parallel_degree", "tensor_parallel_degree"},
                                                       {"optimizer.lr", "lr"},
                                                       {"model.optim.lr", "lr"},
                                                       {"trainer.max_steps", "max_steps"},
                                                       {"--training.local_batch_size", "local_batch_size"},
                                                       {"training.seed", "data.seed"},
                                                       {"optim.config.betas", "optimizer.betas"}};
  for (const auto& [word, name] : words) {
    std::vector<std::string> names;
    for (const Subject* subject : FindInOtherMaps(word, Subjects())) names.push_back(subject->name);
    EXPECT_EQ(names, std::vector<std::string>{name}) << word;
  }
  for (const char* other : {"batch.samples", "training.no_such_word", "seq_len", ".", "--"})
    EXPECT_THAT(FindInOtherMaps(other, Subjects()), IsEmpty()) << other;
  for (const char* word : {"GQA", "GBS", "MBS", "VPP", "lora", "deepspeed", "zero_stage", "fsdp", "--save", "--load",
                           "--finetune", "--fp8-format", "--eval-interval", "--freeze-ViT", "checkpoint.interval"})
    EXPECT_THAT(FindByName(word, Subjects()), Not(IsEmpty())) << word;
}

TEST(Explain, KnowsValuesThatAreMeant) {
  EXPECT_THAT(MeantValues("vit"), HasSubstr("models.<name>.kind: write `radio_vit`"));
  EXPECT_THAT(MeantValues("mi300x"), HasSubstr("device: {memory: 192"));
  EXPECT_EQ(MeantValues("radio_vit"), "");
  EXPECT_THAT(MeantValues("selective"), HasSubstr("modules.<name>.recompute: write `none`: flash attention keeps no"));
}

TEST(Glossary, IsThePage) {
  std::ifstream in(InSource("docs/glossary.md"));
  EXPECT_EQ(GlossaryPage(), std::string(std::istreambuf_iterator<char>(in), {}));
}

TEST(Glossary, EveryBoldWordOfItIsATerm) {
  const std::string page(GlossaryPage());
  size_t marks = 0, names = 0;
  for (size_t at = page.find("**"); at != std::string::npos; at = page.find("**", at + 2)) ++marks;
  for (const Term& term : TermsOf(page)) {
    names += term.names.size();
    for (const std::string& name : term.names) {
      EXPECT_THAT(Named(name, SubjectType::kTerm), Contains(term.names[0])) << name;
    }
    EXPECT_THAT(term.text, Not(HasSubstr("**")));
    EXPECT_THAT(term.text, Not(HasSubstr("](")));
    for (const std::string& place : term.pages)
      EXPECT_TRUE(std::ifstream(InSource(place.substr(0, place.find('#')))).good()) << place;
  }
  EXPECT_GE(names, marks / 2) << "a paragraph with a term does not begin with it";
}

TEST(Glossary, ReadsTermsAsMarkdown) {
  const std::vector<Term> terms = TermsOf(
      "# Words\n\nNo term, not even **this**.\n\n**bridge** Carries *rows*, [4,5] and `*` of [a\npage](x/y.md#z). "
      "**Leader**: who\nsends.\n\n**a, b**, **c** Three [ways](#words).\n");
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0].names, (std::vector<std::string>{"bridge", "leader"}));
  EXPECT_EQ(terms[0].text, "bridge Carries rows, [4,5] and `*` of a page. Leader: who sends.");
  EXPECT_EQ(terms[0].pages, std::vector<std::string>{kDocs + "x/y.md#z"});
  EXPECT_EQ(terms[1].names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(terms[1].pages, std::vector<std::string>{kDocs + "glossary.md#words"});
}

TEST(Pages, AreFoundByTheirHeadings) {
  const std::vector<PageSection> sections = PageSections(kDocs + "./a.md\n# Saving\n## The `step` file, twice\n");
  ASSERT_EQ(sections.size(), 2u);
  EXPECT_EQ(sections[1].place, kDocs + "a.md#the-step-file-twice");
  EXPECT_EQ(sections[1].title, "The step file, twice (Saving)");
  EXPECT_GT(PageSections(PageHeadings()).size(), 100u);
}

// The first answer, or one of the first three.
TEST(Search, AnswersQuestions) {
  const std::pair<const char*, const char*> kFirst[] = {
      {"run out of gpu memory", "20"},
      {"number of nodes", "cluster.nodes"},
      {"hugging face", "docs/hugging_face.md"},
      {"oom", "cluster.host_memory"},
      {"samples between two checkpoints", "checkpoint.every_steps"},
      {"pipelne bubbel", "bubble"},
  };
  for (const auto& [question, name] : kFirst) {
    std::vector<std::string> found = Found(question);
    found.resize(std::min<size_t>(found.size(), 3));
    EXPECT_THAT(found, Contains(name)) << question;
  }
  EXPECT_THAT(Found("how do I resume a run"), Contains("docs/checkpoints.md#before-a-resume"));
  EXPECT_THAT(Found("freeze the encoder"), Contains("frozen"));
  EXPECT_THAT(Found("batch size"), Contains("micro_batch_size"));
  EXPECT_EQ(Found("NaN"), Found("nan"));
  EXPECT_THAT(Found("what is the"), IsEmpty());
  EXPECT_THAT(Found("xyzzy"), IsEmpty());
  EXPECT_THAT(Found(std::string(100'000, 'x')), IsEmpty());
  EXPECT_LE(Found("samples of a step").size(), 8u);
}

TEST(Search, NamesWhatWasProbablyMeant) {
  EXPECT_EQ(NearSubject("micro_sampels", Subjects()), "micro_samples");
  EXPECT_EQ(NearSubject("PW0230", Subjects()).value_or("").substr(0, 3), "PW0");
  EXPECT_EQ(NearSubject("qqqqqqqqqqqqqqqqq", Subjects()), std::nullopt);
  EXPECT_EQ(FindByName("epoch_", Subjects()), FindByName("epoch", Subjects()));
}

}  // namespace
}  // namespace planwright
