import { program } from 'commander'
import { checkRuntime } from '../src/host/stack/runtime-check.ts'
import { processTable } from '../test/load/print.ts'
import { siege, type Service } from '../test/load/siege.ts'

/**
 * `npm run siege [-- --seconds 60]`: five hostile customers, strangers and a hostile provider against the real stack.
 * Prints what a well-behaved customer got beside that, and in as much time without it; the status is 1 if a row, a
 * balance or a receipt of that customer is wrong, an answer failed by the router's fault, or a process died.
 */
checkRuntime()
program.option('--seconds <n>', 'how long each of the two times is', Number, 60).parse()
const { quiet, attacked, ledger, faults, processes } = await siege(
  program.opts<{ seconds: number }>(),
)

function line(name: string, { answers, perSecond, p50Ms, p99Ms, refused }: Service): string {
  const others = [...refused].map(([status, count]) => `${count} x ${status}`).join(', ') || 'none'
  return `${name.padEnd(9)} ${answers} answers, ${perSecond.toFixed(1)}/s, p50 ${p50Ms} ms, p99 ${p99Ms} ms; refused: ${others}`
}

console.log(line('quiet', quiet))
console.log(line('attacked', attacked))
console.log(
  `p99 is ${(attacked.p99Ms / quiet.p99Ms).toFixed(1)} times that of the quiet time (target: 3)`,
)
console.log(`${ledger.rows} rows, ${ledger.receipts} receipts\n`)
for (const text of processTable(processes)) console.log(text)
for (const fault of faults.slice(0, 50)) console.log(`FAULT  ${fault}`)
process.exit(faults.length === 0 ? 0 : 1)
