// Names with {layer}, {block}, {tap} and {encoder} in them. {expert} stays: all experts of a parameter have one name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace planwright {

using NameNumbers = std::map<std::string, std::string, std::less<>>;  // "layer" -> "12"

// What is left of `name` behind `pattern`; none: it does not begin so. {encoder} stands for `encoder`, the others for a
// number, which is added to `numbers`.
std::optional<std::string_view> AfterPattern(std::string_view pattern, std::string_view name, std::string_view encoder,
                                             NameNumbers& numbers);

// The name that the pattern makes with these numbers; none if one is not there.
std::optional<std::string> NameFrom(std::string_view pattern, std::string_view encoder, const NameNumbers& numbers);

}  // namespace planwright
