// What adapters stand on, as a digest: checkpoints have adapters alone, and a run goes on with one only where it stands
// on the same weights (docs/training/adapters.md#checkpoints).
#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/state/weights/fit.h"

namespace planwright {

// By module, of those with adapters: a SHA-256 over the weights under them. A projection that is frozen too has one of
// its own ("radio_encoder.projection"): whether it learns changes nothing of what the adapters stand on. Of a parameter
// that is drawn it covers the draw, of
// one that a checkpoint has the digest of its manifest, and of one in files its name, type, shape, and up to 6,144 of
// its elements: those at its begin, in its middle and at its end. So it tells models apart, also where one is trained
// from the other, and reads megabytes of them. `fit`: of the plan, as FitWeights has it. Errors: as
// ElementReader::Read.
absl::StatusOr<std::map<std::string, std::string>> BaseDigests(const Plan& plan, const WeightsFit& fit);

// The modules of the plan of which two such maps have other digests.
std::set<std::string> OnOtherBase(const Plan& plan, const std::map<std::string, std::string>& kept,
                                  const std::map<std::string, std::string>& found);

// Adapters whose source is a checkpoint must stand on the weights on which it trained them; on merged ones they would
// count twice. InvalidArgument with the modules of which `plan` names other weights, and which those of the run were.
// Reads what BaseDigests reads, if there is such a source. `fit`: fits.
absl::Status CheckBaseOfAdapters(const Plan& plan, const WeightsFit& fit);

// What differs between the digests of a checkpoint and those of what a run would stand on; "" if nothing does.
// `checkpoint`: its folder, for the message.
std::string OtherBase(const Plan& plan, const std::map<std::string, std::string>& kept,
                      const std::map<std::string, std::string>& found, const std::string& checkpoint);

}  // namespace planwright
