# SPDX-License-Identifier: BSD-3-Clause
"""One build in a paired measurement: takes rounds of ``fabtests compare`` one by one, as it is told on its input.

Arguments: the two cores. Each line in is a JSON object with case, mode, bytes and, after the first round of these,
count; each line out is one with count and value. Between two rounds it sleeps, and so do its workers.
"""

import json
import sys

from fabtests.compare.case import Cell
from fabtests.compare.cases import CASES
from fabtests.compare.field import Field


def main() -> None:
    with Field(cores=(int(sys.argv[1]), int(sys.argv[2]))) as field:
        for line in sys.stdin:
            order = json.loads(line)
            case = CASES[order["case"]]
            cell = Cell(case.own, order["mode"], order["bytes"])  # what earlier commits have too
            if not field.has(cell.entrant):
                sys.exit(f"{order['case']}: {field.absent[str(cell.entrant)]}")
            count = order.get("count") or case.calibrate(field, cell)
            value = case.run(field, cell, count).value
            print(json.dumps({"count": count, "value": value}), flush=True)


if __name__ == "__main__":
    main()
