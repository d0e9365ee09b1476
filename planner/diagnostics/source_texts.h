// The texts that problems point into, so that a message can show the line.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace planwright {

class SourceTexts {
 public:
  // Gives the text of something that is no file, such as the command line's overrides.
  void Add(const std::string& name, const std::string& text);

  // Line `number` (from 1) of `file` without its line break, or null if there is none. Files are read when first asked
  // for; one that cannot be read has no lines.
  const std::string* Line(const std::string& file, int number);

 private:
  std::map<std::string, std::vector<std::string>> lines_;
};

}  // namespace planwright
