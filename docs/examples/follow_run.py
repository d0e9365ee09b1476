#!/usr/bin/env python3
"""Feeds the stream of a run (docs/run_reports.md#stream) to Weights & Biases, to MLflow, or to the terminal.

    plan status RUN --follow --json | python3 docs/examples/follow_run.py wandb [PROJECT]
    plan status RUN --follow --json | python3 docs/examples/follow_run.py mlflow [EXPERIMENT]
    plan status RUN --follow --json | python3 docs/examples/follow_run.py plain

Without a network: WANDB_MODE=offline, and MLFLOW_TRACKING_URI=sqlite:///mlflow.db. Steps that a later life did again
are passed over: they have the same numbers.
"""

import json
import sys


class Plain:
    def __init__(self, project, run):
        print(f"begin {run['name']} as {run['run_id']}, {run['steps']} steps on {run['ranks']} ranks", flush=True)

    def log(self, step, numbers):
        print(f"{step} " + " ".join(f"{name}={value:.6g}" for name, value in numbers.items()), flush=True)

    def end(self, good, why):
        print(f"end: {'good' if good else 'failed'}, {why}", flush=True)


class Wandb:
    def __init__(self, project, run):
        import wandb

        # The identity of the run: a follower that is started again goes on with the same one.
        self.run = wandb.init(project=project, id=run["run_id"], name=run["name"], config=run, resume="allow")

    def log(self, step, numbers):
        self.run.log(numbers, step=step)

    def end(self, good, why):
        self.run.summary["ended"] = why
        self.run.finish(exit_code=0 if good else 1)


class Mlflow:
    def __init__(self, project, run):
        import mlflow

        self.mlflow = mlflow
        mlflow.set_experiment(project)
        mlflow.start_run(run_name=run["name"], tags={"planwright.run_id": run["run_id"]})
        mlflow.log_params({name: run[name] for name in ("ranks", "steps", "global_samples", "sequence_length")})

    def log(self, step, numbers):
        self.mlflow.log_metrics(numbers, step=step)

    def end(self, good, why):
        self.mlflow.set_tag("planwright.ended", why)
        self.mlflow.end_run("FINISHED" if good else "FAILED")


def numbers_of(event):
    if event["event"] == "evaluation":
        named = {f"evaluation/{name}": one["loss"] for name, one in event["evaluation"].items()}
    else:
        named = {name: event.get(name) for name in ("loss", "grad_norm", "learning_rate", "step_seconds", "aux_loss")}
        named |= {f"loss/{source}": loss for source, loss in event.get("source_loss", {}).items()}
        named["tokens_per_second_per_rank"] = event["pace"]["tokens_per_second_per_rank"]
    return {name: value for name, value in named.items() if value is not None}


def main(kind, project="planwright"):
    follower = None
    for line in sys.stdin:
        event = json.loads(line)
        if event["event"] == "run":
            follower = {"plain": Plain, "wandb": Wandb, "mlflow": Mlflow}[kind](project, event)
        elif event["event"] in ("step", "evaluation") and not event["again"]:
            follower.log(event["step"], numbers_of(event))
        elif event["event"] == "outcome" and follower is not None:
            follower.end(event["exit_status"] == 0, event.get("cause", event["state"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
