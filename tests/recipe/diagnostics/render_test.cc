#include "planner/recipe/diagnostics/render.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace planwright {
namespace {

Location At(int line, int column, int length, const std::string& file = "recipes/vlm.yaml") {
  return {std::make_shared<const std::string>(file), line, column, length};
}

SourceTexts VlmText() {
  SourceTexts texts;
  texts.Add("recipes/vlm.yaml",
            "a: 1\n    ranks: 24\n    tp: 4\n\tname: \"sé\" x: 5\n" + std::string(300, 'y') + "z\n");
  return texts;
}

TEST(Render, ProblemWithHelpAndNote) {
  Diagnostics problems;
  problems
      .Error(DiagnosticKind::kGridDoesNotFit, At(3, 9, 1), "grid of 48 ranks placed on 24", "lower tp\nor add ranks")
      .notes.push_back({At(2, 12, 2), "module `language` was given 24 ranks here"});
  SourceTexts texts = VlmText();
  EXPECT_EQ(RenderText(problems.sorted(), texts, false),
            "recipes/vlm.yaml:3:9: error: grid of 48 ranks placed on 24 [PW0203 GridDoesNotFit]\n"
            "   3 |     tp: 4\n"
            "     |         ^\n"
            "  help: lower tp\n"
            "        or add ranks\n"
            "recipes/vlm.yaml:2:12: note: module `language` was given 24 ranks here\n"
            "   2 |     ranks: 24\n"
            "     |            ^~\n");
}

TEST(Render, CaretStandsUnderItsLetterBehindTabsAndAccents) {
  Diagnostics problems;
  problems.Error(DiagnosticKind::kBadName, At(4, 14, 1), "m");  // the x; é is two bytes
  SourceTexts texts = VlmText();
  EXPECT_EQ(RenderText(problems.sorted(), texts, false),
            "recipes/vlm.yaml:4:14: error: m [PW0107 BadName]\n"
            "   4 |  name: \"sé\" x: 5\n"
            "     |             ^\n");
}

TEST(Render, LongLinesAreCutAroundTheCaret) {
  Diagnostics problems;
  problems.Error(DiagnosticKind::kUnknownKey, At(5, 301, 1), "m");
  SourceTexts texts = VlmText();
  const std::string text = RenderText(problems.sorted(), texts, false);
  EXPECT_NE(text.find("   5 | ..." + std::string(80, 'y') + "z\n     | " + std::string(83, ' ') + "^\n"),
            std::string::npos)
      << text;
}

TEST(Render, LintsAreLinesBehindTheErrorsAndEndInACount) {
  Diagnostics problems;
  problems.Warning(DiagnosticKind::kIdleGpus, At(2, 12, 2), "8 GPUs stay idle", "give a module\nmore ranks");
  problems.Error(DiagnosticKind::kBadName, At(3, 9, 1), "m");
  SourceTexts texts = VlmText();
  EXPECT_EQ(RenderText(problems.sorted(), texts, false),
            "recipes/vlm.yaml:3:9: error: m [PW0107 BadName]\n"
            "   3 |     tp: 4\n"
            "     |         ^\n"
            "recipes/vlm.yaml:2:12: warning: 8 GPUs stay idle: give a module more ranks [PW0212 IdleGpus]\n"
            "1 warning: `plan explain PW0212` says more\n");
}

TEST(Render, WithoutLocationOrTextOnlyTheMessage) {
  Diagnostics problems;
  problems.Error(DiagnosticKind::kFileUnreadable, {}, "cannot read");
  problems.Error(DiagnosticKind::kUnknownKey, At(7, 1, 1, "no/such/file.yaml"), "m");
  SourceTexts texts;
  EXPECT_EQ(RenderText(problems.sorted(), texts, false),
            "error: cannot read [PW0001 FileUnreadable]\nno/such/file.yaml:7:1: error: m [PW0101 UnknownKey]\n");
}

TEST(Render, MessagesCannotDriveTheTerminal) {
  Diagnostics problems;
  problems.Error(DiagnosticKind::kUnknownKey, {}, "key \033[2J\xff");
  SourceTexts texts;
  EXPECT_EQ(RenderText(problems.sorted(), texts, false), "error: key \\x1b[2J\\xff [PW0101 UnknownKey]\n");
}

TEST(Render, ColorAddsOnlyEscapes) {
  Diagnostics problems;
  problems.Error(DiagnosticKind::kGridDoesNotFit, At(3, 9, 1), "m", "h");
  SourceTexts texts = VlmText();
  std::string colored = RenderText(problems.sorted(), texts, true);
  EXPECT_NE(colored.find("\033[1;31merror: "), std::string::npos);
  for (size_t at; (at = colored.find('\033')) != std::string::npos;) colored.erase(at, colored.find('m', at) - at + 1);
  EXPECT_EQ(colored, RenderText(problems.sorted(), texts, false));
}

// Of a value that was made up the file is not known, and its line says nothing.
TEST(Render, JsonHasNoLineWithoutAFile) {
  Diagnostics problems;
  Location made_up;
  made_up.line = 1, made_up.column = 7;
  problems.Error(DiagnosticKind::kGridDoesNotFit, made_up, "m");
  EXPECT_NE(RenderJson(problems.sorted()).dump().find(R"("file":null,"line":0,"column":0,"length":0)"),
            std::string::npos);
}

TEST(Render, JsonHasTheDocumentedShape) {
  Diagnostics problems;
  Diagnostic& problem = problems.Error(DiagnosticKind::kGridDoesNotFit, At(3, 9, 1), "m", "h");
  problem.notes.push_back({At(2, 12, 2), "n"});
  problem.edits = {{"a.b", "2"}, {"a.c", ""}};
  problems.Warning(DiagnosticKind::kIdleGpus, {}, "w");
  EXPECT_EQ(
      RenderJson(problems.sorted()).dump(),
      R"([{"kind":"PW0212","name":"IdleGpus","severity":"warning","message":"w","file":null,"line":0,"column":0,)"
      R"("length":0,"help":"","notes":[],"edits":[]},)"
      R"({"kind":"PW0203","name":"GridDoesNotFit","severity":"error","message":"m","file":"recipes/vlm.yaml","line":3,)"
      R"("column":9,"length":1,"help":"h","notes":[{"message":"n","file":"recipes/vlm.yaml","line":2,"column":12,)"
      R"("length":2}],"edits":[{"path":"a.b","value":"2"},{"path":"a.c","value":null}]}])");
}

}  // namespace
}  // namespace planwright
