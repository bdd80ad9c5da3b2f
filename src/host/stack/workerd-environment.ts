/**
 * The environment of workerd beside the supervisor's. workerd's allocator keeps a cache for each processor where the kernel's
 * restartable sequences (rseq(2)) are free for it, and else one for each thread, whose every allocation takes a longer way
 * (docs/performance-findings.md, "The allocator of workerd"). The C library takes them at the start of a program unless it is told
 * not to; other libraries than glibc, and releases before 2.35, ignore this.
 * @param given the tunables that the operator has set, which come last and so count
 */
export function workerdEnvironment(given: string | undefined): Readonly<Record<string, string>> {
  // glibc refuses the whole text for an empty part of it.
  const tunables = ['glibc.pthread.rseq=0', given ?? ''].filter((text) => text !== '')
  return { GLIBC_TUNABLES: tunables.join(':') }
}
