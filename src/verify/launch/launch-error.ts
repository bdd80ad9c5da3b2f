/**
 * A launch whose digest cannot be computed: firmware of another form, or parts that do not fit together.
 *
 * What to do: read the message; the guest it describes would not start, or would not be measured as asked.
 */
export class LaunchError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'LaunchError'
  }
}
