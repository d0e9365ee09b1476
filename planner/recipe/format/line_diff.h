// What differs between two texts, by lines.
#pragma once

#include <string>

namespace planwright {

// "@@ line 3 @@", "-" before lines of `from` alone, "+" before those of `to` alone; empty if the texts are the same.
std::string LineDiff(const std::string& from, const std::string& to);

// A diff without the "\r" of its lines, unless the text has lines without: then they may be what differs.
std::string DiffToRead(const std::string& diff, const std::string& text);

}  // namespace planwright
