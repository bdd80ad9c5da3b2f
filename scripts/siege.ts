import { program } from 'commander'
import { checkRuntime } from '../src/host/stack/runtime-check.ts'
import { processTable } from '../test/load/print.ts'
import { ATTACKS } from '../test/load/siege-attacks.ts'
import { siege, SIEGE, type Phase, type SiegeReport } from '../test/load/siege.ts'

/**
 * `npm run siege [-- --seconds 60]`: hostile customers, clients without a key and a hostile provider against the real
 * stack. Prints the service that a well-behaved customer got during the attack, without it, and while the attackers
 * attacked an unrelated server on the same machine. The exit status is 1 if a row, a balance or a receipt of that
 * customer is wrong, the router itself made an answer fail, or a process died.
 */
checkRuntime()
program
  .option('--seconds <n>', 'how long each of the three times is', Number, 60)
  .option('--attacks <names>', 'only these, with commas between them', (text) => text.split(','))
  .option('--each', 'one attack after another, each against a new router')
  .option(
    '--rounds <n>',
    'how often the attack is made on the same router, for its memory',
    Number,
    1,
  )
  .option('--ledger-rows <n>', 'old rows of the customer of the last attack', Number)
  .option('--no-decoy', 'leaves out the attack on an unrelated server')
  .addHelpText('after', `\nAttacks: ${Object.keys(ATTACKS).join(', ')}`)
  .parse()
interface Options {
  readonly seconds: number
  readonly attacks?: readonly string[]
  readonly each?: true
  readonly decoy: boolean
  readonly rounds: number
  readonly ledgerRows?: number
}
const { seconds, each, decoy, rounds, ledgerRows, ...given } = program.opts<Options>()
const attacks = given.attacks ?? (each ? Object.keys(ATTACKS) : SIEGE)

const figures = ({ service: { answers, perSecond, p50Ms, p99Ms, refused } }: Phase) =>
  `${String(answers).padStart(6)} answers, ${perSecond.toFixed(1).padStart(6)}/s, ` +
  `p50 ${p50Ms} ms, p99 ${p99Ms} ms; refused: ${tally(refused)}`

function tally(counts: Iterable<readonly [string, number]>): string {
  return [...counts].map(([name, count]) => `${count} x ${name}`).join(', ') || 'none'
}

function cpuOf({ cpu }: Phase): string {
  return [...cpu].map(([name, share]) => `${name} ${(100 * share).toFixed(0)} %`).join(', ')
}

function print(report: SiegeReport): void {
  const { quiet, decoy: unrelated, attacked, ledger, processes, workerMib } = report
  const { faults, routerFaults } = report
  const phases = Object.entries({ quiet, unrelated, attacked }).flatMap(([name, phase]) =>
    phase === undefined ? [] : [[name, phase] as const],
  )
  for (const [name, phase] of phases) console.log(`${name.padEnd(10)}${figures(phase)}`)
  const times = (base: Phase) => (attacked.service.p99Ms / base.service.p99Ms).toFixed(1)
  const beside = unrelated && `, ${times(unrelated)} times that beside an unrelated server`
  console.log(`p99 is ${times(quiet)} times that of the quiet time (target: 3)${beside ?? ''}`)
  for (const [name, phase] of phases) console.log(`CPU ${name.padEnd(10)}${cpuOf(phase)}`)
  for (const [name, { deeds }] of phases) {
    for (const [attack, statuses] of Object.entries(deeds)) {
      console.log(`  ${name} ${attack}: ${tally(Object.entries(statuses))}`)
    }
  }
  console.log(`${ledger.rows} rows, ${ledger.receipts} receipts`)
  console.log(`the worker had ${workerMib.before} MiB and has ${workerMib.after.join(', ')} MiB`)
  for (const text of processTable(processes)) console.log(text)
  for (const text of routerFaults) console.log(text)
  for (const fault of faults.slice(0, 50)) console.log(`FAULT  ${fault}`)
}

interface Attacked {
  readonly names: readonly string[]
  readonly report: SiegeReport
}

/** A row for each attack that ran alone. */
function singlesTable(all: readonly Attacked[]): string[] {
  const rows = all.map(({ names, report: { quiet, attacked } }) => {
    const [before, after] = [quiet.service, attacked.service]
    const p99 = [before.p99Ms, after.p99Ms].map((ms) => `${ms} ms`)
    const times = (after.p99Ms / before.p99Ms).toFixed(1)
    const perSecond = `${before.perSecond.toFixed(0)} then ${after.perSecond.toFixed(0)}`
    return [names.join(', '), ...p99, times, perSecond]
  })
  return markdown(['one attack', 'quiet p99', 'attacked p99', 'times', 'answers/s'], rows)
}

/** A row for each phase of a siege, and the worker's memory after it. */
function wholeTable(all: readonly Attacked[]): string[] {
  return all.flatMap(({ report }) => {
    const { quiet, decoy: unrelated, attacked, ledger, workerMib } = report
    const times: Record<string, Phase | undefined> = {
      quiet,
      'attackers at an unrelated server': unrelated,
      attacked,
    }
    const rows = Object.entries(times).flatMap(([name, phase]) => {
      if (phase === undefined) return []
      const { perSecond, p50Ms, p99Ms, refused } = phase.service
      return [[name, perSecond.toFixed(1), `${p50Ms} ms`, `${p99Ms} ms`, tally(refused)]]
    })
    return [
      ...markdown(['', 'answers/s', 'p50', 'p99', 'refused'], rows),
      '',
      `${ledger.rows} rows and ${ledger.receipts} receipts; faults: ${report.faults.length}; the worker had ` +
        `${workerMib.before} MiB and has ${workerMib.after.join(', then ')} MiB.`,
    ]
  })
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
}

const runs = each ? attacks.map((name) => [name]) : [attacks]
const reports: Attacked[] = []
for (const names of runs) {
  if (each) console.log(`\n== ${names.join(', ')}`)
  // Sequential, because they share the machine.
  const report = await siege({
    seconds,
    attacks: names,
    decoy,
    rounds,
    ...(ledgerRows !== undefined && { ledgerRows }),
  })
  print(report)
  reports.push({ names, report })
}
console.log('\nFor docs/faults.md:\n')
for (const text of each ? singlesTable(reports) : wholeTable(reports)) console.log(text)
const failed = reports.some(({ report }) => report.faults.length > 0)
process.exit(failed ? 1 : 0)
