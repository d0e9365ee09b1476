// Values in every shipped plan: each has a type, a memory and a layout, and the instructions that join values name the
// dim. Bug numbers are those of docs/reference_bugs.md.
#include <map>
#include <set>

#include "planner/verify/verify.h"
#include "tests/reference_bugs/shipped_plans.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::ForEachInstruction;
using testing::ForEachShipped;
using testing::Site;

// Bug 11: the way to interpolate positions was the default of a library.
TEST(Values, PositionsSayHowTheyAreMade) {
  ForEachShipped([](const Plan& plan) {
    ForEachInstruction(plan, [](const Instruction& op, const Site& site) {
      if (op.kind != OpKind::kPositionAndClass) return;
      EXPECT_TRUE(op.integer("crop") == 0 || op.integer("crop") == 1) << site.name;
      EXPECT_GT(op.integer("side"), 0) << site.name;
    });
  });
}

// Bugs 20 and 21: lanes were always joined along dim 0, and later along a dim that was guessed from shapes, which fails
// if two sizes are equal. Here each instruction that joins or cuts names the dim, or only one dim is possible.
TEST(Values, AreJoinedAlongANamedDim) {
  const std::set<OpKind> named = {OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kConcat, OpKind::kSplit,
                                  OpKind::kLocalSlice};
  std::set<OpKind> seen;
  ForEachShipped([&](const Plan& plan) {
    ForEachInstruction(plan, [&](const Instruction& op, const Site& site) {
      seen.insert(op.kind);
      const bool says = op.kind == OpKind::kReshard
                            ? op.attributes.contains("from_dim") && op.attributes.contains("to_dim")
                            : op.attributes.contains("dim");
      EXPECT_TRUE(says || (op.kind != OpKind::kReshard && !named.contains(op.kind)))
          << site.name << " " << OpName(op.kind);
    });
  });
  for (OpKind kind :
       {OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kConcat, OpKind::kLocalSlice, OpKind::kReshard}) {
    EXPECT_TRUE(seen.contains(kind)) << OpName(kind);
  }
}

// Bug 21: over a bridge, rows are joined in the order of samples, along dim 0, the only dim whose size is known only at
// run time. So nothing can be guessed from sizes. The number of rows of each sample is a value that both sides read.
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
          const ValueType& rows = *made.at(part.sizes);
          EXPECT_TRUE(rows.dtype == DType::kInt64 && rows.host && rows.dims.size() == 1) << part.sizes;
        }
      }
    }
  });
}

// Bug 21: if there are as many features as rows, both dims have equal sizes. The plan still says which dim is meant,
// and V4 refuses the other one.
TEST(Values, OfEqualSidesAreNotJoinedAlongTheOther) {
  Recipe recipe = testing::TinyRecipe({2, 2, 4, 2, 4, false});
  Give(recipe.modules[1].model, {{"hidden", recipe.batch.sequence_length.value}});
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

// Bug 18: the offsets of packed images stayed on the CPU, and attention on the GPU waited for them. Here every value
// says whether it lies in host memory, and V4 refuses a block that expects it elsewhere.
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

// Bug 33: labels and masks were cut over tp like activations, although the loss needs the whole sequence.
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

// Bug 36: the model narrowed token ids and marked packed data. Here what is read has its type from the reading
// instruction on.
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

// Bug O: a shift of offsets changed the caller's own object, and a second forward shifted again. Here a value is made
// once: an instruction that makes another value gives it another name.
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
