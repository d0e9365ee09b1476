// Toys of which one key says what cannot be expressed: it is named, with its value and why.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

#include "planner/exchange/read_model.h"
#include "tests/exchange/toy_folder.h"

namespace planwright::testing {

struct Refusal {
  const char *toy, *path, *value, *word;  // a JSON pointer without its first /; the value as JSON; part of the message
};

inline void ExpectRefusals(std::span<const Refusal> refusals) {
  using nlohmann::ordered_json;
  for (const Refusal& refusal : refusals) {
    Toy toy = ReadToy(refusal.toy);
    const ordered_json::json_pointer at(std::string("/") + refusal.path);
    toy.config[at] = ordered_json::parse(refusal.value);
    Findings findings;
    ReadModel(toy.config, {}, findings);
    std::string path = refusal.path;
    std::replace(path.begin(), path.end(), '/', '.');
    ASSERT_EQ(findings.problems.size(), 1U) << refusal.path;
    EXPECT_EQ(findings.problems[0].where, path);
    EXPECT_EQ(findings.problems[0].value, toy.config[at].dump());
    EXPECT_THAT(findings.problems[0].message, ::testing::HasSubstr(refusal.word));
  }
}

}  // namespace planwright::testing
