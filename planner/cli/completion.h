// Completion: the shells ask `plan complete WORD...`, which knows the table of commands and reads the recipe; their
// scripts only pass on what it prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// Prints what the last of `words` may become; those before it are the line as far as it is written. `a=b` may come in
// one word, or as bash parts it in three. Each line is a candidate, with a tab and what it means; behind an option's or
// an override's `=` only its value. Other lines tell the shell what to do:
//   :nospace          no space follows a candidate
//   :files [END...]   files are candidates too, all or with one of these ends, and folders; with the end / only folders
int PrintCompletions(const std::vector<std::string>& words);

// To be read by a shell.
extern const std::string_view kBashCompletion, kZshCompletion;

}  // namespace planwright
