// No rule and no reference sees a wrong initial value, or a weight that decays and should not. So the parameters of a
// small module of each kind of model are written down (draws.golden), for people to review. UPDATE_GOLDENS=1 writes the
// file as the modules are now: read the difference, with docs/model beside it, before you commit it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/plan/statement/small_modules.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

TEST(Draws, AreThoseOfTheFile) {
  std::string made =
      "# The parameters of a small model of each kind: published name, slot, shape, cut over tp or expert_tp, draw.\n"
      "# Written by statement_test with UPDATE_GOLDENS=1. A person has compared it with docs/model.\n";
  for (const std::string& kind : testing::ModelKinds()) made += testing::DrawTables(*StatementOf(kind));
  const std::string path = InSource("tests/plan/statement/draws.golden");
  if (std::getenv("UPDATE_GOLDENS") != nullptr) std::ofstream(path, std::ios::binary) << made;
  std::ostringstream golden;
  golden << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(golden.str(), made);
}

}  // namespace
}  // namespace planwright
