import { equalBytes, toHex, utf8, type Bytes } from '../../protocol/bytes.ts'

/**
 * API keys: `cmr_<customer>_<key id>_<secret>`. The customer part names the storage to look in and ends in a MAC, so that an
 * invented customer is recognised without a storage call.
 */

/** Crockford's base32 in lower case: 32 characters, without those that are easily confused. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const SIGN = `[${ALPHABET}]`

/** A customer id has 60 random bits and 80 bits of MAC. */
const NAME_SIGNS = 12
const MAC_SIGNS = 16
const KEY_ID_SIGNS = 10
/** 200 random bits. */
const SECRET_SIGNS = 40

const CUSTOMER_ID = `${SIGN}{${NAME_SIGNS + MAC_SIGNS}}`
const FORM = new RegExp(
  `^(cmr_(${CUSTOMER_ID})_${SIGN}{${KEY_ID_SIGNS}})_${SIGN}{${SECRET_SIGNS}}$`,
)
const CUSTOMER_FORM = new RegExp(`^${CUSTOMER_ID}$`)

/** Domain separation for the two uses of the one secret. */
const MAC_LABEL = 'cmr/customer-id/v1\0'
const SALT_LABEL = 'cmr/cache-salt/v1\0'

/** Returns random bytes of the requested length. */
export type Random = (length: number) => Bytes

export interface NewApiKey {
  /** The whole key, which only the customer keeps. */
  readonly key: string
  /** `cmr_<customer>_<key id>`: identifies the key and is not secret. */
  readonly prefix: string
}

/** A new key of a customer. */
export function newApiKey(customerId: string, random: Random): NewApiKey {
  return renewApiKey(`cmr_${customerId}_${randomSigns(random, KEY_ID_SIGNS)}`, random)
}

/** A new secret for the key with this prefix. */
export function renewApiKey(prefix: string, random: Random): NewApiKey {
  return { key: `${prefix}_${randomSigns(random, SECRET_SIGNS)}`, prefix }
}

/** The parts of a key's text, or undefined when it does not have the form of a key. */
export function parseApiKey(
  text: string,
): { readonly customerId: string; readonly prefix: string } | undefined {
  const [, prefix, customerId] = FORM.exec(text) ?? []
  return prefix === undefined || customerId === undefined ? undefined : { customerId, prefix }
}

/** A new customer id, authenticated with the directory's secret. */
export async function newCustomerId(secret: CryptoKey, random: Random): Promise<string> {
  const name = signs(random(NAME_SIGNS))
  return name + (await macOf(secret, name))
}

/** Whether an id was made with the directory's secret, in constant time. */
export async function isCustomerId(secret: CryptoKey, id: string): Promise<boolean> {
  if (!CUSTOMER_FORM.test(id)) return false
  const mac = await macOf(secret, id.slice(0, NAME_SIGNS))
  return equalBytes(utf8(mac), utf8(id.slice(NAME_SIGNS)))
}

/** Imports the directory's secret for WebCrypto. */
export function importSecret(secret: Bytes): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
}

/** The salt of a customer's prefix cache: 64 hex digits, the same on every instance of this service. */
export async function cacheSaltOf(secret: CryptoKey, customerId: string): Promise<string> {
  return toHex(await hmac(secret, SALT_LABEL + customerId))
}

async function macOf(secret: CryptoKey, name: string): Promise<string> {
  const mac = await hmac(secret, MAC_LABEL + name)
  return signs(mac.subarray(0, MAC_SIGNS))
}

async function hmac(secret: CryptoKey, text: string): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.sign('HMAC', secret, utf8(text)))
}

/** Random text of `count` characters, five bits each. */
export function randomSigns(random: Random, count: number): string {
  return signs(random(count))
}

/** A part of a regular expression that matches such text. */
export function signPattern(count: number): string {
  return `${SIGN}{${count}}`
}

/** One character for five bits of every byte. */
function signs(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => ALPHABET.charAt(byte & 31)).join('')
}

/** A key whose form and customer id were checked, but not whether it exists. */
export interface PresentedKey {
  readonly customerId: string
  /** `cmr_<customer>_<key id>`; not secret. */
  readonly keyPrefix: string
  /** SHA-256 of the whole key, lowercase hex. */
  readonly keyHash: string
}

/** Whether a key has expired; `expiresAt` in ms, null: never. */
export function isExpired(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now
}
