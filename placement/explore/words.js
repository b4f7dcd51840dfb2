// Words about plans.

export const STATUS = {
  optimal: "optimal, proven", feasible: "feasible, not proven", infeasible: "infeasible, proven",
  unknown: "nothing found in time", violating: "breaks rules",
};

// Say how far a search is; its values are in ms.
export function progressWords(report) {
  const value = (x) => x === null ? "none" : x.toFixed(2) + " ms";
  let words = "best " + value(report.incumbent) + ", bound " + value(report.bound);
  if (report.incumbent !== null && report.bound !== null && report.incumbent > 0) {
    words += ", gap " + (100 * (report.incumbent - report.bound) / report.incumbent).toFixed(2) + " %";
  }
  return words + ", " + report.seconds.toFixed(1) + " s";
}

export function duration(seconds) {
  return seconds < 1 ? Number((1000 * seconds).toPrecision(2)) + " ms" : seconds.toFixed(1) + " s";
}

export function signed(value, unit, digits) {
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 ? "−" : "+") + text + " " + unit;
}

// Say which sites, votes and leaders differ in the second of two plans.
export function moves(before, after) {
  const parts = [];
  for (const [sign, some, others] of [["+", after, before], ["−", before, after]]) {
    const sites = some.replicas.filter((site) => !others.replicas.includes(site));
    if (sites.length) {
      parts.push(sign + sites.length + (sites.length === 1 ? " replica: " : " replicas: ") + sites.join(", "));
    }
  }
  if (before.leader !== after.leader && after.leader) { parts.push("leader to " + after.leader); }
  const now = after.voters.filter((site) => !before.voters.includes(site) && before.replicas.includes(site));
  if (now.length) { parts.push(now.join(", ") + (now.length === 1 ? " votes now" : " vote now")); }
  return parts.join("; ");
}
