// What values are, in every plan that ships: each says its type, where it lies, how it is cut, and along which dim it
// is joined.
#include <map>
#include <set>

#include "planner/verify/verify.h"
#include "tests/reference_bugs/shipped_plans.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::ForEachInstruction;
using testing::ForEachShipped;
using testing::Place;

// Bug 11: how positions are interpolated was a default of a library.
TEST(Values, PositionsSayHowTheyAreMade) {
  ForEachShipped([](const Plan& plan) {
    ForEachInstruction(plan, [](const Instruction& op, const Place& place) {
      if (op.kind != OpKind::kPositionAndClass) return;
      EXPECT_TRUE(op.integer("crop") == 0 || op.integer("crop") == 1) << place.name;
      EXPECT_GT(op.integer("side"), 0) << place.name;
    });
  });
}

// Bugs 20 and 21: lanes were joined along dim 0 whatever they were, and later along the dim that shapes seemed to tell,
// which equal shapes do not. Whatever joins or cuts names the dim, or has but one that can be meant.
TEST(Values, AreJoinedAlongANamedDim) {
  const std::set<OpKind> named = {OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kConcat, OpKind::kSplit,
                                  OpKind::kLocalSlice};
  std::set<OpKind> seen;
  ForEachShipped([&](const Plan& plan) {
    ForEachInstruction(plan, [&](const Instruction& op, const Place& place) {
      seen.insert(op.kind);
      const bool says = op.kind == OpKind::kReshard
                            ? op.attributes.contains("from_dim") && op.attributes.contains("to_dim")
                            : op.attributes.contains("dim");
      EXPECT_TRUE(says || (op.kind != OpKind::kReshard && !named.contains(op.kind)))
          << place.name << " " << OpName(op.kind);
    });
  });
  for (OpKind kind :
       {OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kConcat, OpKind::kLocalSlice, OpKind::kReshard}) {
    EXPECT_TRUE(seen.contains(kind)) << OpName(kind);
  }
}

// Over a bridge rows are joined, in the order of samples: dim 0, the one whose size is known at run time only. Nothing
// could be guessed from sizes, since that one has none; and how many rows a sample has is a value of its own, which
// both sides read.
TEST(Values, OverABridgeHaveOneDimOfRunTimeSize) {
  ForEachShipped([](const Plan& plan) {
    for (const Role& role : plan.roles) {
      std::map<std::string, const ValueType*> made;
      for (const Instruction& op : role.step) {
        for (const Output& output : op.outputs) made[output.name] = &output.type;
        for (const ExchangePart& part : op.parts) {
          if (part.bridge.empty()) continue;
          const ValueType& type = *made.at(part.value);
          ASSERT_EQ(type.dims.size(), 2u) << part.value;
          EXPECT_TRUE(std::holds_alternative<std::string>(type.dims[0]) &&
                      std::holds_alternative<int64_t>(type.dims[1]))
              << part.value;
          const ValueType& rows = *made.at(part.sample_rows);
          EXPECT_TRUE(rows.dtype == DType::kInt64 && rows.host && rows.dims.size() == 1) << part.sample_rows;
        }
      }
    }
  });
}

// With as many features as rows, the sizes of both dims are equal, and the plan still says which is meant: another dim
// is refused.
TEST(Values, OfEqualSidesAreNotJoinedAlongTheOther) {
  Recipe recipe = testing::TinyRecipe({2, 2, 4, 2, 4, false});
  std::get<HybridLmModel>(recipe.modules[1].model.model).hidden = recipe.batch.sequence_length.value;
  Diagnostics problems;
  Plan plan = CompileRecipe(recipe, problems).value();
  int turned = 0;
  for (Block& block : plan.blocks) {
    for (Instruction& op : block.body) {
      if (op.kind != OpKind::kAllGather || turned > 0 || block.module != "language") continue;
      op.attributes["dim"] = int64_t{2};
      ++turned;
    }
  }
  ASSERT_EQ(turned, 1);
  const std::vector<Violation> found = VerifyPlan(plan);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().rule, "V4");
}

// Bug 18: offsets of packed images stayed on the CPU, and attention on the GPU waited for them. Every value says where
// it lies, and a block that expects it elsewhere is refused.
TEST(Values, SayWhereTheyLie) {
  ForEachShipped([](const Plan& plan) {
    for (const Role& role : plan.roles) {
      for (const Instruction& op : role.step) {
        if (OpClassOf(op.kind) != OpClass::kData) continue;
        for (const Output& output : op.outputs) {
          const bool shapes = output.name.ends_with("image_grid") || output.name.ends_with("image_ids") ||
                              output.name.ends_with("sample_rows") || output.name.ends_with("document_ends");
          EXPECT_EQ(output.type.host, shapes) << output.name;
        }
      }
    }
  });
  Diagnostics problems;
  Plan plan = CompileRecipe(testing::TinyRecipe({2, 2, 4, 2, 4, false}), problems).value();
  for (Instruction& op : plan.roles.at(0).step) {
    for (Output& output : op.outputs) {
      if (output.name.ends_with("image_grid")) output.type.host = false;
    }
  }
  const std::vector<Violation> found = VerifyPlan(plan);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().rule, "V4");
}

// Bug 33: labels and masks were cut over tp with the activations, though the loss needs the whole sequence.
TEST(Values, OfTheLossAreNeverCutOverTp) {
  ForEachShipped([](const Plan& plan) {
    for (const Module& module : plan.modules) {
      const Block* head = plan.FindBlock(module.name + ".head.forward");
      if (module.kind != "hybrid_lm" || head == nullptr) continue;
      int seen = 0;
      const auto check = [&](const Output& value) {
        if (!value.name.starts_with("labels") && !value.name.starts_with("loss_mask")) return;
        ++seen;
        EXPECT_FALSE(value.type.layout.contains(Axis::kTp)) << value.name;
      };
      for (const Output& input : head->inputs) check(input);
      for (const Instruction& op : head->body) {
        for (const Output& output : op.outputs) check(output);
      }
      EXPECT_GE(seen, 2) << module.name;
    }
  });
}

// Bug 36: token ids were narrowed and flags of packed data made inside the model. What is read has its type from the
// reader on.
TEST(Values, OfTheDataKeepTheirTypes) {
  ForEachShipped([](const Plan& plan) {
    for (const Role& role : plan.roles) {
      for (const Instruction& op : role.step) {
        if (OpClassOf(op.kind) != OpClass::kData) continue;
        for (const Output& output : op.outputs) {
          const bool numbers = output.name.ends_with("patches") || output.name.ends_with("loss_mask");
          EXPECT_EQ(output.type.dtype == DType::kInt64, !numbers) << output.name;
        }
      }
    }
  });
}

// Found while reading: a shift of offsets changed the caller's own object, and a second forward shifted again. A value
// is made once, and what makes another has another name.
TEST(Values, AreMadeOnce) {
  ForEachShipped([](const Plan& plan) {
    for (const Block& block : plan.blocks) {
      std::set<std::string> made;
      for (const Output& input : block.inputs) made.insert(input.name);
      for (const Output& taken : block.takes) made.insert(taken.name);
      for (const Instruction& op : block.body) {
        for (const Output& output : op.outputs) {
          EXPECT_TRUE(testing::IsStateName(output.name) || made.insert(output.name).second)
              << block.name << " " << output.name;
        }
      }
    }
  });
}

}  // namespace
}  // namespace planwright
