# Sourced by the scripts here. A process that dies while it uses NVLink multicast can make the GPUs of its host unusable
# for everybody, and machines of tests often share their host with others. Ranks inherit these variables.
why="no process of a test may use NVLink multicast"
for setting in NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1; do
  name=${setting%=*}
  if [ "$(printenv "$name")" != "${setting#*=}" ]; then
    echo "set $setting: $why"
    echo "verdict: FAIL"
    exit 1
  fi
done
