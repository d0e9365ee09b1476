// The machines of a recipe as the plan has them, with the profile that the recipe names.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Files of profiles, each read once: a recipe is checked again for each value that advice tries.
class ProfileFiles {
 public:
  // Unavailable: the file cannot be read. Other errors: of what it says.
  const absl::StatusOr<DeviceProfile>& Read(const std::string& path);

 private:
  std::map<std::string, absl::StatusOr<DeviceProfile>> read_;
};

// Reads the file of `cluster.profile`. Problems: a profile that cannot be read, or is of another device (PW0021), and
// a device without the figures that nobody else knows (PW0102): `gpu: other`, and CPU ranks that have some.
Cluster ClusterOf(const ClusterRecipe& recipe, ProfileFiles& files, Diagnostics& diagnostics);
// The same, of a recipe that is checked once.
Cluster ClusterOf(const ClusterRecipe& recipe, Diagnostics& diagnostics);

// Problem (PW0021): the profile has no time in the recipe's precision, so that no plan of the recipe can use it.
void CheckProfilePrecision(const Recipe& recipe, const Cluster& cluster, Diagnostics& diagnostics);

// Drops from the plan's profile what no instruction of the plan asks for, and texts for people. Problems (PW0021): no
// time of an instruction that computes is left, or more points than a plan has room for.
void KeepWhatIsAsked(const ClusterRecipe& recipe, Plan& plan, Diagnostics& diagnostics);

}  // namespace planwright
