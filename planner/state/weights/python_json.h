// JSON as Python writes it, which has three numbers that JSON does not have.
#pragma once

#include <string>
#include <string_view>

namespace planwright {

// Infinity, -Infinity and NaN outside of texts each become {"__float__": "Infinity"}, as transformers 5 writes them. So
// the config.json of published models is JSON.
std::string WithTaggedFloats(std::string_view text);

}  // namespace planwright
