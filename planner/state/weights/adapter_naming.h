// Which tensors of a file are the adapters of a module. From the number of the layer on, a name must be right; in front
// of that, programs have words of their own (docs/training/adapters.md#in-and-out).
#pragma once

#include <string>
#include <vector>

#include "planner/state/weights/part_naming.h"

namespace planwright {

struct AdapterNaming {
  PartNaming naming;
  // A beginning of names that no program is known to put there: "model.critic."; empty: there is none among those
  // taken.
  std::string unknown;
  // A beginning of names that end as those of the module, and that are of another one; empty: there is none.
  std::string other;
};

// Of several tensors for a place, the one whose beginning is known. None with words of another module is taken.
AdapterNaming NamingOfAdapter(const Plan& plan, const WeightPart& part, const std::vector<WantedTensor>& wanted,
                              const WeightFiles& files);

// What to do with a file whose names are a state_dict's own, with the name of the adapter in them; "" of others.
std::string HintOfAdapterNames(const WeightFiles& files);

}  // namespace planwright
