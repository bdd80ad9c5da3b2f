/**
 * What the ledger's functions share. A released function never changes: a change gets a new name with the next version
 * number, so that workers of two releases can run side by side on one database.
 */

/**
 * Begins a call: checks READ COMMITTED, in which each statement sees what others have committed before it, and locks the
 * rows of the customers in the order of their ids, so that two calls never deadlock.
 * @param lock_ms how long to wait for one lock; 0: without limit
 */
const LOCK_CUSTOMERS = `CREATE OR REPLACE FUNCTION cmr_lock_customers_v1(ids text[], lock_ms integer)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off AS $cmr$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the ledger needs READ COMMITTED' USING ERRCODE = '25001';
  END IF;
  PERFORM set_config('lock_timeout', lock_ms::text, true);
  PERFORM 1 FROM customers WHERE customer_id = ANY (ids) ORDER BY customer_id FOR UPDATE;
END
$cmr$`

/** The beginning of the period that contains a moment, in UTC, as `periodOf` in settle/key-limits.ts has it. */
const PERIOD_START = `CREATE OR REPLACE FUNCTION cmr_period_start_v1(reset text, at_ms bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $cmr$
  SELECT CASE reset
    WHEN 'daily' THEN at_ms - at_ms % 86400000
    WHEN 'weekly' THEN at_ms - (at_ms + 259200000) % 604800000
    WHEN 'monthly' THEN (EXTRACT(EPOCH FROM date_trunc('month',
      TIMESTAMP 'epoch' + at_ms / 1000 * INTERVAL '1 second')) * 1000)::bigint
    ELSE 0 END
$cmr$`

/**
 * Fixes the search path of the functions to that of the migration, whoever calls them. Lasts until the end of the
 * transaction.
 */
export const FIX_SEARCH_PATH = `SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`

export const statements: readonly string[] = [FIX_SEARCH_PATH, PERIOD_START, LOCK_CUSTOMERS]
