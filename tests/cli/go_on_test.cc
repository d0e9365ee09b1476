// The command to go on: pasted into a shell, its words are those of the command that was given.
#include "planner/cli/go_on.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

// What bash makes of the last word of a command.
std::string LastWordInBash(const std::string& command) {
  const std::string word = command.substr(command.rfind("--run-dir ") + 10);
  std::string quoted = "'";
  for (const char c : "printf %s " + word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  std::FILE* shell = popen(("bash -c " + quoted + "'").c_str(), "r");
  std::string read;
  for (int c; (c = std::fgetc(shell)) != EOF;) read += static_cast<char>(c);
  pclose(shell);
  return read;
}

TEST(GoOn, NamesTheSameFolderWhateverItsName) {
  for (const std::string name : {"runs/a-1", "with space", "it's", "$HOME `x` \"y\" \\", "\xff\xfe", "\x1b[31mred",
                                 "a\nb", "tab\there", "del\x7f", "it's \x1b7 \\n", "žluťoučký",
                                 "\xe2\x80\xae"
                                 "turned",
                                 "caf\xe9",
                                 "\x01"
                                 "23"}) {
    const std::string command = LaunchAgain(Arguments(), name, false);
    EXPECT_EQ(PrintableLines(command), command) << "the message would show other text";
    EXPECT_EQ(command.find('\n'), std::string::npos);
    EXPECT_EQ(LastWordInBash(command), name) << command;
  }
}

}  // namespace
}  // namespace planwright
