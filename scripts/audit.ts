import { spawnSync } from 'node:child_process'
import { auditVerdict } from './audit/verdict.ts'

/**
 * `npm run audit`: asks the registry for known vulnerabilities of the shipped packages. Exit status 0: none; 1: at
 * least one of moderate severity or above; 77: the registry could not be reached, so the result is unknown.
 */
const SKIPPED = 77

const args = ['audit', '--omit=dev', '--json', '--fetch-retries=1', '--fetch-timeout=20000']
const { stdout } = spawnSync('npm', args, { encoding: 'utf8', timeout: 60_000 })
const verdict = auditVerdict(stdout)
if (verdict.kind === 'unknown') {
  console.log(`skipped: the registry cannot be asked: ${verdict.reason}`)
  process.exit(SKIPPED)
}
if (verdict.kind === 'weak') {
  for (const finding of verdict.findings) console.log(finding)
  process.exit(1)
}
console.log('no known weakness')
