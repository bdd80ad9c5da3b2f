/**
 * Variables that workerd gets in addition to the supervisor's environment. workerd's allocator keeps one cache per
 * processor where the kernel's restartable sequences (rseq(2)) are available to it, else one cache per thread, with
 * which each allocation takes longer (docs/performance-findings.md, "The allocator of workerd"). glibc claims rseq at
 * the start of a program unless it is told not to; glibc before 2.35 and other C libraries ignore the variable.
 * @param given the tunables that the operator has set; they come last and so take precedence
 */
export function workerdEnvironment(given: string | undefined): Readonly<Record<string, string>> {
  // glibc rejects the complete text if a part of it is empty.
  const tunables = ['glibc.pthread.rseq=0', given ?? ''].filter((text) => text !== '')
  return { GLIBC_TUNABLES: tunables.join(':') }
}
