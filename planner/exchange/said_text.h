// Texts of findings and comments, made of what dialects say.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/exchange/said_model.h"

namespace planwright {

// "a, b and c", with another word before the last.
std::string Listed(const std::vector<std::string>& names, const std::string& last = " and ");

// TEXT of a line, with where numbers came from, {NAME}, and what they are, {=NAME}. A name that is none stays.
std::string Filled(const std::string& text, const std::function<const Said*(std::string_view)>& find);
std::string Filled(const std::string& text, const SaidPart& part);

}  // namespace planwright
