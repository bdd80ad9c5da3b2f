import { program } from 'commander'
import { FAMILIES } from '../test/faults/families.ts'
import { setup } from '../test/support/simulated-platform.ts'

/**
 * `npm run faults [-- <family> [<case>]]`: runs the fault matrix against the real stack, or only the families and cases
 * whose names contain these words. Prints each case with the expected and the observed result. The exit status is 1 if
 * they differ in any case.
 */
async function main(only = '', named = ''): Promise<number> {
  let failures = 0
  let cases = 0
  for (const { name, run } of FAMILIES.filter((family) => family.name.includes(only))) {
    console.log(`\n${name}\n`)
    const begun = performance.now()
    const verdicts = await run({ short: false, named })
    for (const { trial, expected, seen } of verdicts) {
      console.log(`${seen === expected ? ' ok ' : 'FAIL'}  ${trial}`)
      console.log(`        expected  ${expected}\n        seen      ${seen}`)
      if (seen !== expected) failures += 1
    }
    cases += verdicts.length
    console.log(`\n${verdicts.length} cases, ${Math.round(performance.now() - begun) / 1000} s`)
  }
  console.log(`\n${cases - failures} as expected, ${failures} not`)
  return failures === 0 ? 0 : 1
}

program
  .name('faults')
  .description('Run the fault matrix against the real stack and print it case by case.')
  .argument('[family]', 'only the families with this in their names')
  .argument('[case]', 'only the cases with this in their names')
  .parse()
const [family, named] = program.args
// The families that test pinned egress need a provider on the same simulated platform.
const removePlatform = await setup()
const status = await main(family, named)
removePlatform()
process.exit(status)
