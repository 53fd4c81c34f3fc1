-- purpose: which version of ackbox a process runs, and the schema's revision that it knows as its
--          head. Both are null for processes of before; those know 0001.
ALTER TABLE {schema}.worker ADD COLUMN version text, ADD COLUMN revision text;
