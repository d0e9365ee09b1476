// Keys with their values, given as overrides, as the YAML text of a recipe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace planwright {

// A text as a scalar: as it is if that means the same, else in quotes. And always in quotes.
std::string ScalarText(const std::string& text);
std::string QuotedText(const std::string& text);

class KeyTree {
 public:
  // "modules.language.parallel.tp=2", as ReadRecipe takes it. A later one wins. InvalidArgument: the key has no place
  // beside those before it, or its value cannot be written behind `key: `.
  absl::Status Set(const std::string& override);
  // The value of a key, as it was given; empty: it is not set.
  std::string Find(const std::string& key) const;
  bool empty() const { return root_.children.empty(); }

  // Maps in the order in which their first keys were set: small ones of values in one line, others as blocks.
  std::string Yaml() const;

 private:
  struct Node {
    std::string key, value;
    std::vector<Node> children;  // of a map
    const Node* Find(std::string_view name) const;
  };
  static void Write(const Node& node, size_t depth, std::string& text);

  Node root_;
};

}  // namespace planwright
