/**
 * A launch whose digest cannot be computed: unknown firmware, or parts that do not fit together.
 *
 * What to do: read the message; the described guest would not start, or would not be measured as intended.
 */
export class LaunchError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'LaunchError'
  }
}
