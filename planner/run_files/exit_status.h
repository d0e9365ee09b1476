// Exit statuses of `plan` and of the executor. Scripts rely on them, so numbers keep their meaning. A launch that
// signal N interrupted, without a checkpoint, exits with 128 + N.
#pragma once

namespace planwright {

enum ExitStatus : int {
  kExitSuccess = 0,        // valid, same, done
  kExitInvalid = 1,        // the recipe is invalid, or the plans differ
  kExitUsage = 2,          // usage, input or output error
  kExitPeerLost = 10,      // another rank ended, or could not be reached
  kExitHang = 11,          // no progress within the timeout (run_timeout.h)
  kExitNumerics = 12,      // gradients were not finite in step after step, or rows of a bridge beyond their limit
  kExitDamaged = 13,       // a checkpoint is damaged
  kExitPlanMismatch = 14,  // a rank has another plan, or belongs to another run
  kExitStorage = 15,       // the run directory cannot be written
  kExitDevice = 16,        // a device, its driver or its host failed
  kExitCapacity = 17,      // more expert rows came to a rank than memory is planned for (moe.imbalance)
  kExitReplaced = 18,      // a newer life of the run has begun elsewhere; this one stopped
  kExitInternal = 70,      // a bug of Planwright
  kExitPreempted = 75,     // stopped from outside, with a checkpoint written
};

}  // namespace planwright
